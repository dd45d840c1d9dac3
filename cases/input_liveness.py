"""A capture that is told to watch its inputs: `check_input_liveness=True`.

From 2.13 on torch can note, during a capture, each tensor from outside that an operator on the GPU reads, and ask before each
replay whether its memory is still the tensor's. One that is gone is an error that says where it was made and dropped,
instead of numbers from whatever lies there now. It sees deaths, not mistakes: an input that lives and is no longer the one
you mean is none of its business. Nor does it know whether the memory of a dead tensor is really in danger.

Mechanism: frozen pointer
Source: https://github.com/pytorch/pytorch/pull/174649
"""

import inspect
import unittest

import torch


def _watched(body, *inputs):
    """The graph of `body(*inputs)`, which are watched, and its output."""
    if "check_input_liveness" not in inspect.signature(torch.cuda.graph.__init__).parameters:
        raise unittest.SkipTest("needs torch.cuda.graph(check_input_liveness=...)")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, check_input_liveness=True):
        y = body(*inputs)
    return graph, y


def _replay(graph, y):
    graph.replay()
    yield "replay", y


def _ones():
    return torch.ones(4, device="cuda")


def eager():
    """Twice four ones is four twos."""
    yield "replay", _ones() * 2


def freed_bug():
    """A graph whose input was dropped still doubles it: twos.

    Seen instead: an error before the replay, where an unwatched graph would double what lies there by now.
    """
    x = _ones()
    captured = _watched(lambda x: x * 2, x)
    del x
    yield from _replay(*captured)


def freed_fix():
    """A graph whose input was kept is replayed: twos."""
    x = _ones()
    yield from _replay(*_watched(lambda x: x * 2, x))


def view():
    """A view that was dropped is no loss as long as another tensor has its memory: twos."""
    x = torch.ones(8, device="cuda")
    part = x[2:6]
    captured = _watched(lambda x: x * 2, part)
    del part
    yield from _replay(*captured)


def resized_bug():
    """An input that was resized, and so moved, is doubled: twos.

    Seen instead: the same error. The tensor lives, and its memory is another.
    """
    x = _ones()
    captured = _watched(lambda x: x * 2, x)
    x.resize_(1_000_000)
    yield from _replay(*captured)


def weight_bug():
    """A weight that was given other data, ones again, is used: twos.

    Seen instead: the same error. Assigning to `.data` leaves the old memory to others.
    """
    weight, x = torch.nn.Parameter(_ones()), torch.full((4,), 2.0, device="cuda")
    with torch.no_grad():
        captured = _watched(lambda weight: weight * x, weight)
    weight.data = _ones()
    yield from _replay(*captured)


def weight_fix():
    """A weight that was written in place is used: twos."""
    weight, x = torch.nn.Parameter(_ones()), torch.full((4,), 2.0, device="cuda")
    with torch.no_grad():
        captured = _watched(lambda weight: weight * x, weight)
        weight.copy_(_ones())
    yield from _replay(*captured)


def rebound_eager():
    """Twice four threes is four sixes."""
    yield "replay", torch.full((4,), 3.0, device="cuda") * 2


def rebound_bug():
    """A graph doubles the tensor that its input's name stands for now: sixes.

    Seen instead: twos, and no error. The old tensor lives on in a list, so there is nothing to complain of.
    """
    x = _ones()
    graph, y = _watched(lambda x: x * 2, x)
    _history = [x]
    x = torch.full((4,), 3.0, device="cuda")
    yield from _replay(graph, y)


def rebound_fix():
    """Written into the old tensor, the threes are doubled: sixes."""
    x = _ones()
    captured = _watched(lambda x: x * 2, x)
    x.copy_(torch.full((4,), 3.0, device="cuda"))
    yield from _replay(*captured)


def _pinned_input(upload):
    host = torch.ones(4, pin_memory=True)
    captured = _watched(lambda host: upload(host) * 2, host)
    del host
    yield from _replay(*captured)


def pinned_copy_bug():
    """A graph that copies from a pinned tensor which was dropped still doubles it: twos.

    Seen instead: the error. Pinned inputs are watched as well, and with reason: the block is the next pinned tensor's.
    """
    static = _ones()
    yield from _pinned_input(lambda host: static.copy_(host, non_blocking=True))


def pinned_to():
    """An upload by `.to()` from a pinned tensor that was dropped is not noticed, and shows twos.

    The operator that makes a GPU tensor of a host tensor has no input on the GPU, and only operators with one are watched.
    """
    yield from _pinned_input(lambda host: host.to("cuda", non_blocking=True))


def _chained(keep):
    """Two graphs, of which the second doubles the output of the first, ones."""
    x, first = torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        middle = x + 1
    second, y = _watched(lambda x: x * 2, middle)
    kept = [middle] if keep else []
    del middle
    first.replay()
    second.replay()
    yield "replay", y
    del kept


def chained_bug():
    """A graph that reads another graph's output runs after it, whether somebody holds the tensor or not: twos.

    Seen instead: the error. Nobody else is given memory of the first graph's pool, but the check asks only for the tensor.
    """
    yield from _chained(keep=False)


def chained_fix():
    """With the output of the first graph kept, the second shows twos."""
    yield from _chained(keep=True)
