"""A tensor of the default pool that the graph writes and nobody keeps: each replay writes over who has its block now."""

import torch

total = torch.zeros(4, device="cuda")  # finds freed-memory
x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    total += x
del total
innocent = torch.full((4,), 5.0, device="cuda")
graph.replay()
assert innocent.tolist() == [6, 6, 6, 6]
