"""Code that asks whether it is being captured, and then computes something else.

`torch.cuda.is_current_stream_capturing()` is true during exactly one run of the Python: the capture. Whatever the code
does then becomes the graph, and at replay the question is not asked again. So such a check may change how a result is
computed, never what it is.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import time

import torch

STEPS = range(6)
CAPTURE_AT = 3


def _negate_in_capture(x, y):
    z = x + y
    if torch.cuda.is_current_stream_capturing():
        z *= -1
    return z


def _copy_in_capture(x, y):
    """Adds the first elements of two matrices; a captured run lays y out afresh before it does."""
    if torch.cuda.is_current_stream_capturing():
        y = y.contiguous()
    return (x + y)[0, 0]


def _sleep(x, y):
    """Takes its time in either mode: the CPU may not wait in a capture, but a kernel that spins can be recorded."""
    z = x + y
    if torch.cuda.is_current_stream_capturing():
        torch.cuda._sleep(1000)
    else:
        time.sleep(0.001)
    return z


def _eager_then_graph(run, shape=(1,)):
    """Three steps of `run(x, y)` in eager mode, its capture with a first replay, then replays; x is 0 and y the step."""
    x = torch.zeros(shape, device="cuda", dtype=torch.int32).t()
    y = torch.zeros(shape, device="cuda", dtype=torch.int32).t()
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        y.fill_(i)
        if i < CAPTURE_AT:
            yield "warmup", run(x, y)
        elif i == CAPTURE_AT:
            with torch.cuda.graph(graph):
                z = run(x, y)
            graph.replay()
            yield "capture", z
        else:
            graph.replay()
            yield "replay", z


def eager():
    """Outside of a capture the check is false, and the sum is 0, 1, 2, 3, 4, 5."""
    x = torch.zeros(1, device="cuda", dtype=torch.int32)
    for i in STEPS:
        yield "replay", _negate_in_capture(x, torch.full_like(x, i))


def bug():
    """A graph computes what the same function computes in eager mode.

    Seen instead: 0, 1, 2 and then -3, -4, -5. The check was true while the graph was captured, so the negation is one
    of its kernels, and a replay has no way to leave it out.
    """
    yield from _eager_then_graph(_negate_in_capture)


def fix():
    """A check that only changes the memory layout changes no value: 0 to 5.

    The captured run copies y into a contiguous block first, which is a kernel more and the same sum.
    """
    yield from _eager_then_graph(_copy_in_capture, shape=(2, 2))


def fix_sleep():
    """A check that swaps one way to wait for another changes no value: 0 to 5.

    `time.sleep` would run once, at capture; `torch.cuda._sleep` is a kernel, which each replay runs.
    """
    yield from _eager_then_graph(_sleep)
