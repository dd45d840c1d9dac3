"""A Python list made a tensor inside a capture: a copy from memory that is gone when a replay comes."""

import torch

x = torch.ones(2, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * torch.tensor([2.0, 3.0], device="cuda")  # finds pageable-in-capture
