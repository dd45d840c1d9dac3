"""The same with a replay before."""

import torch

x = torch.ones(1, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
graph.replay()
assert y.item() == 2
