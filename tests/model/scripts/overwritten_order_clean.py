"""The same replayed in the order of the captures."""

import torch

x = torch.full((4,), 2.0, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    scratch = x * 3
    y1 = scratch + 1
    del scratch
with torch.cuda.graph(second, pool=first.pool()):
    y2 = x + 10
first.replay()
second.replay()
assert y1.tolist() == [7] * 4
assert y2.tolist() == [12] * 4
