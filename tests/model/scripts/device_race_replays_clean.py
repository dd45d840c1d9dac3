"""The same with a pool for each graph."""

import torch

x = torch.ones(4, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    scratch = x * 3
    y1 = scratch + 1
    del scratch
with torch.cuda.graph(second):
    scratch = x * 5
    y2 = scratch + 1
    del scratch
torch.cuda.synchronize()
with torch.cuda.stream(torch.cuda.Stream()):
    first.replay()
with torch.cuda.stream(torch.cuda.Stream()):
    second.replay()
torch.cuda.synchronize()
assert (y1 + y2).tolist() == [10] * 4
