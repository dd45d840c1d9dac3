"""The first launch of a kernel in a process waits for the device; later ones, copies and captured ones do not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
pytestmark = pytest.mark.modelled

SLEEP = 100_000_000  # cycles: 50 ms on the virtual clock


def busy() -> torch.cuda.Event:
    """The end of a long spin that has just begun."""
    spun = torch.cuda.Event()
    torch.cuda._sleep(SLEEP)
    spun.record()
    assert not spun.query()
    return spun


def test_only_the_first_launch_waits():
    """After it the spin is over; the second launch of the same operator goes behind a new one."""
    x = torch.ones(1, device="cuda")
    spun = busy()
    x.erfinv()
    assert spun.query()
    spun = busy()
    x.erfinv()
    assert not spun.query()
    torch.cuda.synchronize()


def test_copies_of_memory_load_nothing():
    """`clone` waits for nothing, however new it is."""
    x = torch.ones(1, device="cuda")
    spun = busy()
    y = x.clone()
    assert not spun.query()
    torch.cuda.synchronize()
    assert y.item() == 1


def test_a_capture_loads_without_waiting():
    """A kernel that was captured first is loaded by then: launched eagerly behind a spin it waits no more."""
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.lgamma()
    spun = busy()
    x.lgamma()
    assert not spun.query()
    torch.cuda.synchronize()


def test_zeros_fill_by_a_kernel_up_to_2_14():
    """From 2.15 on they are set by memory sets, and a fill after them is the first."""
    x = torch.zeros(1, device="cuda")
    spun = busy()
    x.fill_(2)
    assert spun.query() == (RELEASE >= (2, 15))
    torch.cuda.synchronize()
    assert x.item() == 2
