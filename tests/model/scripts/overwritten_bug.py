"""Two graphs of one pool, replayed in the other order than captured, the first value read last."""

import torch

x = torch.full((4,), 2.0, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    scratch = x * 3
    y1 = scratch + 1
    del scratch
with torch.cuda.graph(second, pool=first.pool()):
    y2 = x + 10
second.replay()
first.replay()  # finds overwritten-by-graph
y1.tolist()
assert y2.tolist() != [12] * 4
