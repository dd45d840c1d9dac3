"""Copies between host and device: pageable, pinned, waiting or not, recorded or refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

SLEEP = 100_000_000
REFUSED = "unless the CPU tensor is pinned"


class TestToTheDevice:
    """From host memory."""

    def test_a_pageable_copy_reads_the_host_at_the_call(self):
        """Rewriting the source afterwards changes nothing, even behind a busy stream."""
        host = torch.ones(2)
        torch.cuda._sleep(SLEEP)
        device = host.to("cuda", non_blocking=True)
        host.fill_(9)

        assert device.tolist() == [1, 1]

    def test_a_pinned_copy_that_does_not_wait_reads_the_host_when_it_runs(self):
        """Rewriting the source too early is a race, which is lost behind a busy stream."""
        host = torch.ones(2).pin_memory()
        torch.cuda._sleep(SLEEP)
        device = host.to("cuda", non_blocking=True)
        host.fill_(9)

        assert device.tolist() == [9, 9]

    @pytest.mark.parametrize("fix", ["blocking", "synchronize", "event", "fresh buffer"])
    def test_waiting_or_a_fresh_buffer_ends_the_race(self, fix):
        """A copy that waits, a synchronisation, an event, or a buffer of its own keep the value."""
        host = torch.ones(2).pin_memory()
        torch.cuda._sleep(SLEEP)
        device = host.to("cuda", non_blocking=fix != "blocking")
        if fix == "synchronize":
            torch.cuda.synchronize()
        elif fix == "event":
            event = torch.cuda.Event()
            event.record()
            event.synchronize()
        elif fix == "fresh buffer":
            host = torch.empty(2, pin_memory=True)
        host.fill_(9)

        assert device.tolist() == [1, 1]

    def test_a_freed_pinned_block_is_not_handed_out_while_a_copy_reads_it(self):
        """Pinned memory waits for the copies that touch it before it is used again."""
        host = torch.ones(2).pin_memory()
        address = host.data_ptr()
        torch.cuda._sleep(SLEEP)
        device = host.to("cuda", non_blocking=True)
        del host
        early = torch.full((2,), 5.0).pin_memory().data_ptr()
        torch.cuda.synchronize()
        late = torch.full((2,), 5.0).pin_memory()

        assert device.tolist() == [1, 1]
        assert address != early
        assert late.data_ptr() == address

    def test_pinned_memory_is_known_as_such(self):
        """`is_pinned` tells, on a view too; a device tensor cannot be pinned."""
        host = torch.empty(4, pin_memory=True)

        assert host.is_pinned()
        assert host[1:].is_pinned()
        assert not torch.ones(2).is_pinned()
        assert host.device.type == "cpu"
        assert host.pin_memory() is host
        with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
            torch.ones(2, device="cuda").pin_memory()

    def test_gradients_cross_back(self):
        """A copy is an operator of autograd: the gradient arrives on the host."""
        host = torch.ones(2, requires_grad=True)
        (host.cuda() * 3).sum().backward()

        assert host.grad.tolist() == [3, 3]
        assert host.grad.device.type == "cpu"


class TestToTheHost:
    """To host memory."""

    def test_a_copy_that_waits_is_right(self):
        """`.cpu()` waits for the device."""
        x = torch.ones(2, device="cuda")
        torch.cuda._sleep(SLEEP)
        x += 1

        assert x.cpu().tolist() == [2, 2]

    def test_a_copy_that_does_not_wait_is_read_too_early(self):
        """The host sees the old bytes of a pinned target until it synchronises."""
        x, target = torch.ones(2, device="cuda"), torch.zeros(2).pin_memory()
        torch.cuda._sleep(SLEEP)
        target.copy_(x, non_blocking=True)
        early = target.tolist()
        torch.cuda.synchronize()

        assert (early, target.tolist()) == ([0, 0], [1, 1])


class TestInCapture:
    """Copies while a graph is recorded."""

    def test_a_pinned_copy_is_recorded(self):
        """Each replay reads the host's bytes anew; the recorded copy back writes them at its end."""
        host, back = torch.ones(2).pin_memory(), torch.zeros(2).pin_memory()
        device = torch.zeros(2, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            device.copy_(host, non_blocking=True)
            y = device * 2
            back.copy_(y, non_blocking=True)
        results = []
        for value in (3, 4):
            host.fill_(value)
            graph.replay()
            torch.cuda.synchronize()
            results.append((y.tolist(), back.tolist()))

        assert results == [([6, 6], [6, 6]), ([8, 8], [8, 8])]

    def test_a_refused_pageable_copy_does_not_lose_the_capture(self):
        """The error comes from the copy, leaving raises nothing more, and caught inside the capture is still good."""
        x = torch.ones(2, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 1
            with pytest.raises(RuntimeError, match=REFUSED):
                torch.ones(2).to("cuda", non_blocking=True)
        graph.replay()
        with pytest.raises(RuntimeError, match=REFUSED), torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.copy_(torch.ones(2))

        assert x.tolist() == [2, 2]

    @pytest.mark.parametrize("how", ["list index", "tensor", "as_tensor", "new_tensor", "host index", "assigned list index"])
    def test_what_makes_a_tensor_of_python_values_is_such_a_copy(self, how):
        """An index by a list, and a CUDA tensor made of Python numbers, begin with a pageable copy."""
        x = torch.arange(4.0, device="cuda")
        index = torch.tensor([0, 1])

        def assign() -> None:
            x[[0, 1]] = 5.0

        ways = {
            "list index": lambda: x[[0, 1]], "tensor": lambda: torch.tensor([1.0], device="cuda"), "host index": lambda: x[index],
            "as_tensor": lambda: torch.as_tensor([1.0], device="cuda"), "new_tensor": lambda: x.new_tensor([1.0]),
            "assigned list index": assign,
        }  # fmt: skip
        with pytest.raises(RuntimeError, match=REFUSED), torch.cuda.graph(torch.cuda.CUDAGraph()):
            ways[how]()

    @pytest.mark.parametrize("how", ["cpu", "to", "tolist", "numpy"])
    def test_a_copy_to_pageable_memory_is_refused_before_it_could_wait(self, how):
        """The plain error comes, not that of a wait, and the capture is not lost."""
        x = torch.ones(2, device="cuda")
        ways = {"cpu": x.cpu, "to": lambda: x.to("cpu"), "tolist": x.tolist, "numpy": lambda: x.cpu().numpy()}
        with pytest.raises(RuntimeError, match=REFUSED), torch.cuda.graph(torch.cuda.CUDAGraph()):
            x += 1
            ways[how]()

    def test_a_tensor_of_the_cpu_for_a_side_of_where_is_such_a_copy(self):
        """torch.where moves one without dimensions over; outside a capture that is no matter, and a Python number needs no copy."""
        x, five = torch.ones(2, device="cuda"), torch.tensor(5.0)
        assert torch.where(x > 1, x, five).tolist() == [5, 5]
        assert torch.where(torch.ones(2) > 1, torch.ones(2), 5.0).tolist() == [5, 5]
        with pytest.raises(RuntimeError, match=REFUSED), torch.cuda.graph(torch.cuda.CUDAGraph()):
            x += 1
            torch.where(x > 1, x, five)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.where(x > 1, 4, x).where(x < 0, 5.0) + torch.where(x > 1, 1.0, 2)
        graph.replay()
        assert y.tolist() == [7, 7]

    def test_filling_with_a_number_is_no_copy(self):
        """`full`, `arange`, `fill_` and assignment of a Python number to several elements are kernels."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x = torch.full((3,), 2.0, device="cuda") + torch.arange(3, device="cuda")
            x[1].fill_(7)
            x[2:] = 9
        graph.replay()

        assert x.tolist() == [2, 7, 9]

    def test_assigning_a_number_to_one_element_is_a_copy(self):
        """`x[1] = 7` copies a 0-dim CPU tensor, since its shape is that of the element."""
        x = torch.zeros(3, device="cuda")
        x[1] = 7
        with pytest.raises(RuntimeError, match=REFUSED), torch.cuda.graph(torch.cuda.CUDAGraph()):
            x[1] = 8

        assert x.tolist() == [0, 7, 0]
