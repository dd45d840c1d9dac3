"""A name that is bound to a new tensor moves; the graph does not.

A graph reads addresses. `lr = base + i` makes a tensor at another address and lets go of the old one, which the graph
goes on reading: first its old value, and once the allocator has handed the block to somebody else, that one's data. So an
input is allocated once and written to in place.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

WARMUP = range(2)
REPLAYS = range(2, 6)


def _zero():
    return torch.zeros(1, device="cuda", dtype=torch.int32)


def eager():
    """A learning rate of 0, 1, 2, 3, 4, 5 is what the product shows."""
    base_lr = _zero()
    for i in (*WARMUP, *REPLAYS):
        lr = base_lr + i
        yield "replay", 1 * lr


def bug():
    """A graph reads the tensor that its input's name stands for: 0 to 5.

    Seen instead: 0, 1 and then anything but the step, often 1. The graph reads the block that `lr` had at capture, which
    is free since step 2. What lies there is the allocator's choice, and releases choose differently.
    """
    base_lr = _zero()
    graph = torch.cuda.CUDAGraph()
    for i in WARMUP:
        lr = base_lr + i
        out = 1 * lr
        yield "warmup", out
    with torch.cuda.graph(graph):
        out = 1 * lr
    captured = lr.data_ptr()
    for i in REPLAYS:
        lr = base_lr + i
        graph.replay()
        yield "address", {"read by the graph": captured, "lr": lr.data_ptr()}
        yield "replay", out


def fix():
    """An input that is written in place at each step shows what was written: 0 to 5.

    `copy_` leaves the tensor at its address.
    """
    base_lr, lr = _zero(), _zero()
    graph = torch.cuda.CUDAGraph()
    for i in WARMUP:
        lr.copy_(base_lr + i)
        out = 1 * lr
        yield "warmup", out
    with torch.cuda.graph(graph):
        out = 1 * lr
    captured = lr.data_ptr()
    for i in REPLAYS:
        lr.copy_(base_lr + i)
        graph.replay()
        yield "address", {"read by the graph": captured, "lr": lr.data_ptr()}
        yield "replay", out
