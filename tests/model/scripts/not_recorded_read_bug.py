"""A stream outside the capture reads what was only recorded."""

import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
seen = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph, capture_error_mode="relaxed"):
    y = x * 2
    with torch.cuda.stream(side):
        seen.copy_(y)  # finds not-recorded
torch.cuda.synchronize()
graph.replay()
