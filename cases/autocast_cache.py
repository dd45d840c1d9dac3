"""Autocast keeps the half-precision copy of a weight, and a graph may be captured with that copy.

For as long as an autocast context lives, it keeps the cast of each leaf tensor that requires a gradient. A capture within
the context, after the weight was used once, finds the cast made and records a product that reads it; no cast is in the
graph. A new value of the weight never reaches it. Nor does the graph own the copy: its block is free once the context ends.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

# The weight at each replay.
VALUES = [1.0, 2.0, 3.0]


def _input_and_weight():
    return torch.ones(1, 1, device="cuda"), torch.ones(1, 1, device="cuda", requires_grad=True)


def _set(w, value):
    with torch.no_grad():
        w.fill_(value)


def _replays(graph, y, w):
    for i, value in enumerate(VALUES):
        _set(w, value)
        graph.replay()
        yield "replay" if i else "capture", y


def eager():
    """A product under autocast shows the weight: 1, 2, 3."""
    x, w = _input_and_weight()
    for value in VALUES:
        _set(w, value)
        with torch.amp.autocast("cuda"):
            y = x @ w
        yield "replay", y


def bug():
    """A product captured under autocast shows the weight, as in eager mode.

    Seen instead: 1 for good. The eager product put the cast of the weight into the cache, and the graph reads that.
    """
    x, w = _input_and_weight()
    graph = torch.cuda.CUDAGraph()
    with torch.amp.autocast("cuda"):
        _ = x @ w
        with torch.cuda.graph(graph):
            y = x @ w
    yield from _replays(graph, y, w)


def fix_no_cache():
    """Without the cache, the cast of the weight is a kernel of the graph, and the product shows the weight.

    The eager product before the capture is there for cuBLAS, whose handle cannot be made within a capture.
    """
    x, w = _input_and_weight()
    graph = torch.cuda.CUDAGraph()
    with torch.amp.autocast("cuda", cache_enabled=False):
        _ = x @ w
        with torch.cuda.graph(graph):
            y = x @ w
    yield from _replays(graph, y, w)


def fix_inside():
    """An autocast context entered within the capture starts with an empty cache, and the product shows the weight.

    Here too an eager product comes first, in a context of its own, or the capture fails with
    CUBLAS_STATUS_NOT_INITIALIZED in a process that has used no cuBLAS yet.
    """
    x, w = _input_and_weight()
    graph = torch.cuda.CUDAGraph()
    with torch.amp.autocast("cuda"):
        _ = x @ w
    with torch.cuda.graph(graph), torch.amp.autocast("cuda"):
        y = x @ w
    yield from _replays(graph, y, w)
