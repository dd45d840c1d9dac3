"""Copies collected over replays."""

import torch

x = torch.zeros(1, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
kept, numbers = [], []
for step in range(3):
    x.fill_(step)
    graph.replay()
    kept.append(y.clone())
    numbers.append(y.item())
assert [value.item() for value in kept] == numbers == [0, 2, 4]
