"""A graph has one output buffer, and each replay writes over it.

In eager mode each call allocates a fresh result, so keeping a reference keeps the result. In a graph the output was
allocated once, at capture, in the graph's pool, and its address is part of the recording. A list of outputs is then the
same tensor many times, with the last values. That matters wherever results are collected: predictions, metrics,
micro-batches, the stages of a pipeline.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

INPUTS = [0, 1, 2]


def _model(x):
    return x**2 + 1


def _show(ys):
    """Each result, and their sum."""
    for y in ys:
        yield "replay", y
    yield "replay", torch.sum(torch.cat(ys))


def _addresses(ys):
    return {f"result {i}": y.data_ptr() for i, y in enumerate(ys)}


def _capture():
    x = torch.zeros(1, device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _model(x)
    return graph, x, y


def eager():
    """Squares plus one of 0, 1, 2, collected in a list: 1, 2, 5, in sum 8."""
    yield from _show([_model(torch.full((1,), i, device="cuda", dtype=torch.int32)) for i in INPUTS])


def bug():
    """Outputs collected in a list keep the values they had, as in eager mode.

    Seen instead: 5, 5, 5, in sum 15. The list holds one tensor three times, and the last replay left 5 in it.
    """
    graph, x, y = _capture()
    ys = []
    for i in INPUTS:
        x.fill_(i)
        graph.replay()
        ys.append(y)
    yield "address", _addresses(ys)
    yield from _show(ys)


def fix():
    """Clones of the outputs keep the values they had: 1, 2, 5, in sum 8.

    A clone is queued behind its replay and before the next one, so nothing need be waited for.
    """
    graph, x, y = _capture()
    ys = []
    for i in INPUTS:
        x.fill_(i)
        graph.replay()
        ys.append(y.clone())
    yield "address", _addresses(ys)
    yield from _show(ys)
