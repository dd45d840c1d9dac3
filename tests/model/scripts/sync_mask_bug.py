"""A boolean mask, a synchronize and an event's wait inside captures that a script survives."""

import torch

x = torch.ones(4, device="cuda")
done = torch.cuda.Event()


def mask():
    return x[x > 0]  # finds sync-in-capture


def synchronize():
    torch.cuda.synchronize()  # finds sync-in-capture


def wait():
    done.record()
    done.synchronize()  # finds sync-in-capture


for region in (mask, synchronize, wait):
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            region()
    except RuntimeError:
        pass
torch.cuda.synchronize()
