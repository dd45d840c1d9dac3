"""A result is read after the capture and before the first replay."""

import torch

x = torch.ones(1, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
assert y.item() == 0  # finds read-before-replay
