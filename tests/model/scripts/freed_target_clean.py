"""The same with the target kept."""

import torch

total = torch.zeros(4, device="cuda")
x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    total += x
innocent = torch.full((4,), 5.0, device="cuda")
graph.replay()
assert total.tolist() == [1, 1, 1, 1]
assert innocent.tolist() == [5, 5, 5, 5]
