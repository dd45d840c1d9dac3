"""The constant made before the capture."""

import torch

x = torch.ones(2, device="cuda")
factors = torch.tensor([2.0, 3.0], device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * factors
graph.replay()
assert y.tolist() == [2, 3]
