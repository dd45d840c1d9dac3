"""Branches and loops that the GPU decides: conditional nodes, with the operators behind `torch.cond` and `torch.while_loop`.

A graph can hold a body that runs only if a number on the device is true, or for as long as it is. The operators record such
nodes under a mode that torch's compiler uses, and that is not documented: `CUDAGraphCaptureControlFlowOpDispatchMode` came
with 2.12, loops with 2.14. Without it the operators look at the number in Python, as they do outside of a capture.

Mechanism: frozen choice
Source: https://github.com/pytorch/pytorch/issues/168911
"""

import importlib
import importlib.util
import unittest

import torch

CHOICES = [True, False, True]
LENGTHS = [0, 3, 5]
MODULE = "torch._higher_order_ops.cudagraph_conditional_nodes"


def _control_flow(loops=False):
    """The mode under which a capture records conditional nodes."""
    module = importlib.import_module(MODULE) if importlib.util.find_spec(MODULE) else None
    if not hasattr(module, "if_else_node"):
        raise unittest.SkipTest("needs conditional nodes in graphs, which this release does not record")
    if loops and not hasattr(module, "while_loop_node"):
        raise unittest.SkipTest("needs loops in graphs, which this release does not record")
    return module.CUDAGraphCaptureControlFlowOpDispatchMode()


def _inputs():
    return torch.ones(1, device="cuda"), torch.zeros((), device="cuda", dtype=torch.bool)


def _choose(condition, x):
    """2 if the condition is true, 10 if not."""
    return torch.ops.higher_order.cond(condition, lambda x: x + 1, lambda x: x * 10, (x,))


def _replays(graph, condition, y, choices=CHOICES):
    for choice in choices:
        condition.fill_(choice)
        graph.replay()
        yield "replay", y


def eager():
    """A condition that is true, false, true: 2, 10, 2."""
    x, condition = _inputs()
    for choice in CHOICES:
        yield "replay", _choose(condition.fill_(choice), x)


def cond_bug():
    """A branch on a number of the GPU can be captured.

    Seen instead: an error. Outside of the mode the operator is an `if` in Python, which waits for the number.
    """
    x, condition = _inputs()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _choose(condition, x)
    yield from _replays(graph, condition, y)


def fix_mode():
    """Under the mode both branches are recorded, and each replay runs the one that its condition asks for.

    New in 2.12: https://github.com/pytorch/pytorch/pull/168912
    """
    x, condition = _inputs()
    graph = torch.cuda.CUDAGraph()
    mode = _control_flow()
    with torch.cuda.graph(graph), mode:
        y = _choose(condition, x)
    yield from _replays(graph, condition, y)


def python_condition_bug():
    """`torch.cond` keeps both branches, whatever its condition is.

    Seen instead: 2, 2, 2. A Python bool is decided at once, without a word, as by an `if`.
    """
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.cond(CHOICES[0], lambda x: x + 1, lambda x: x * 10, (x,))
    for _ in CHOICES:
        graph.replay()
        yield "replay", y


def cpu_condition_bug():
    """The condition may lie on the CPU.

    Seen instead: a `ValueError`; the node reads the device.
    """
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    condition = torch.ones((), dtype=torch.bool)
    mode = _control_flow()
    with torch.cuda.graph(graph), mode:
        y = _choose(condition, x)
    yield from _replays(graph, condition, y)


def nested_eager():
    """Two conditions, one within the other: 2, 10, 11, 100."""
    yield from (("replay", number) for number in (2, 10, 11, 100))


def nested():
    """A branch may hold a branch: 2, 10, 11, 100."""
    x, outer = _inputs()
    inner = torch.zeros_like(outer)
    graph = torch.cuda.CUDAGraph()
    mode = _control_flow()
    with torch.cuda.graph(graph), mode:
        y = torch.ops.higher_order.cond(outer, lambda x: _choose(inner, x), lambda x: _choose(inner, x * 10), (x,))
    for first, second in ((True, True), (True, False), (False, True), (False, False)):
        outer.fill_(first)
        inner.fill_(second)
        graph.replay()
        yield "replay", y


def taken_eager():
    """How often the first branch has run: 1, 1, 2."""
    yield from (("replay", count) for count in (1, 1, 2))


def taken():
    """A branch that is not taken does not run: it counts 1, 1, 2. With `torch.where` both would."""
    x, condition = _inputs()
    count = torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    mode = _control_flow()
    with torch.cuda.graph(graph), mode:
        torch.ops.higher_order.cond(condition, lambda x, count: x + count.add_(1), lambda x, count: x * 10, (x, count))
    yield from _replays(graph, condition, count)


def random_bug():
    """A branch may draw random numbers.

    Seen instead: a `RuntimeError`. A body is a capture of its own, which no generator is told of.
    """
    x, condition = _inputs()
    graph = torch.cuda.CUDAGraph()
    mode = _control_flow()
    with torch.cuda.graph(graph), mode:
        y = torch.ops.higher_order.cond(condition, lambda x: x + 1, lambda x: x * 0 + torch.rand_like(x), (x,))
    yield from _replays(graph, condition, y)


def _double(length, x):
    """x, doubled as often as `length` says."""

    def again(step, x, length):
        return step < length

    def once_more(step, x, length):
        return step + 1, x * 2

    return torch.ops.higher_order.while_loop(again, once_more, (torch.zeros_like(length), x), (length,))[1]


def while_eager():
    """1, doubled 0, 3 and 5 times: 1, 8, 32."""
    for number in LENGTHS:
        yield "replay", _double(torch.tensor(number, device="cuda"), torch.ones(1, device="cuda"))


def while_bug():
    """A loop whose length lies on the GPU can be captured.

    Seen instead: an error. Outside of the mode the operator is a `while` in Python, which waits at each turn.
    """
    x, length = torch.ones(1, device="cuda"), torch.zeros((), device="cuda", dtype=torch.int64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _double(length, x)
    yield from _replays(graph, length, y, LENGTHS)


def while_fix():
    """Under the mode each replay goes round as often as its length says: 1, 8, 32.

    New in 2.14: https://github.com/pytorch/pytorch/pull/186055
    """
    x, length = torch.ones(1, device="cuda"), torch.zeros((), device="cuda", dtype=torch.int64)
    graph = torch.cuda.CUDAGraph()
    mode = _control_flow(loops=True)
    with torch.cuda.graph(graph), mode:
        y = _double(length, x)
    yield from _replays(graph, length, y, LENGTHS)
