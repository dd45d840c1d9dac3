"""The same decisions left to the GPU."""

import torch

x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
    y = torch.where(y > 1, y + 1, y)
graph.replay()
assert y.tolist() == [3] * 4
