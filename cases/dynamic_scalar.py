"""A Python number given to an operation is a constant of the graph.

A recorded kernel keeps a copy of the bytes of its arguments. A number is passed by value, so its value at capture is in
those bytes; a tensor is passed as a pointer, so the kernel reads what lies there when it runs. Numbers that never change
(a dropout rate, a hidden size) are safe. A number that is worked out for each step is not.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

STEPS = range(6)
CAPTURE_AT = 3


def _two():
    return torch.tensor(2, device="cuda", dtype=torch.int32)


def eager():
    """Two to the power of the step: 1, 2, 4, 8, 16, 32."""
    x = _two()
    for i in STEPS:
        yield "replay", torch.float_power(x, i)


def bug():
    """An exponent given as a Python number follows the number, as in eager mode.

    Seen instead: 8 at every replay. The exponent was 3 at capture, and 3 is in the recorded kernel; rebinding the name
    `i` on the CPU reaches nothing.
    """
    x = _two()
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        if i < CAPTURE_AT:
            yield "warmup", torch.float_power(x, i)
        elif i == CAPTURE_AT:
            with torch.cuda.graph(graph):
                y = torch.float_power(x, i)
            graph.replay()
            yield "capture", y
        else:
            graph.replay()
            yield "replay", y


def fix():
    """An exponent given as a tensor follows what is written into the tensor: 1, 2, 4, 8, 16, 32.

    The graph holds the address of `exponent`. `fill_` writes a new value there and keeps the address; a new tensor of
    the same name would not do.
    """
    x = _two()
    exponent = torch.zeros(1, device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        exponent.fill_(i)
        if i < CAPTURE_AT:
            yield "warmup", torch.float_power(x, exponent)
        elif i == CAPTURE_AT:
            with torch.cuda.graph(graph):
                y = torch.float_power(x, exponent)
            graph.replay()
            yield "capture", y
        else:
            graph.replay()
            yield "replay", y
