"""A graph that reads another one's output is replayed, and the other never was."""

import torch

x = torch.ones(1, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    y = x * 2
with torch.cuda.graph(second, pool=first.pool()):
    z = y + 1
second.replay()  # finds read-before-replay
assert z.item() == 1
