"""A number of the GPU asked for inside a capture: the script ends with torch's error."""

import torch

x = torch.ones(1, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
    if y.item() > 1:  # finds sync-in-capture
        y += 1
