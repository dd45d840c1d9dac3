"""A library that launches on a stream of its own choice drops out of the graph.

Only work on the capturing stream is recorded, and work on streams that were joined to it by events. A kernel sent
elsewhere during the capture runs there and then, on memory that no recorded kernel has filled yet, and never again: the
tensor it returns belongs to no graph. Nothing raises. The library should use the current stream, be given one, or fork its
own stream from the caller's and join it again.

Mechanism: missing nodes
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

WARMUP = range(3)
REPLAYS = range(4, 7)


def _double_on_default_stream(x):
    with torch.cuda.stream(torch.cuda.default_stream()):
        return x * 2


def _double_on_current_stream(x):
    with torch.cuda.stream(torch.cuda.current_stream()):
        return x * 2


def _double_on(x, stream):
    with torch.cuda.stream(stream):
        return x * 2


def _double_on_forked_stream(x):
    caller, internal = torch.cuda.current_stream(), torch.cuda.Stream()
    internal.wait_stream(caller)  # Forks: a capture of the caller's stream now takes in this one.
    with torch.cuda.stream(internal):
        result = x * 2
    caller.wait_stream(internal)  # Joins: without it the capture cannot end.
    return result


def _eager_then_graph(library):
    """The sum x + 1, doubled by the library: three eager steps, a capture, three replays."""
    x = torch.zeros(1, device="cuda")
    for i in WARMUP:
        x.fill_(i)
        yield "warmup", library(x + 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = library(x + 1)
    for i in REPLAYS:
        x.fill_(i)
        graph.replay()
        yield "replay", y


def eager():
    """(x + 1) doubled is 2, 4, 6 for 0, 1, 2 and 10, 12, 14 for 4, 5, 6."""
    x = torch.zeros(1, device="cuda")
    for i in (*WARMUP, *REPLAYS):
        x.fill_(i)
        yield "replay", _double_on_default_stream(x + 1)


def bug():
    """A library that uses the default stream works in a graph as it does in eager mode.

    Seen instead: a constant, 0 where the memory happened to hold 0. The doubling ran once, during the capture, on a sum
    that was only recorded; `y` is what it returned then, and no replay writes to it.
    """
    yield from _eager_then_graph(_double_on_default_stream)


def fix_current_stream():
    """A library that asks for the current stream is recorded: 10, 12, 14.

    Within the capture the current stream is the capturing one.
    """
    yield from _eager_then_graph(_double_on_current_stream)


def fix_pass_stream():
    """A library that is told which stream to use is recorded, if it is told the capturing one: 10, 12, 14."""
    yield from _eager_then_graph(lambda x: _double_on(x, torch.cuda.current_stream()))


def fix_internal_stream():
    """A library with a stream of its own is recorded, if that stream is forked from the caller's and joined: 10, 12, 14."""
    yield from _eager_then_graph(_double_on_forked_stream)
