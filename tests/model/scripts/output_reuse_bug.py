"""Outputs collected over replays: all of them are the one buffer."""

import torch

x = torch.zeros(1, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
kept = []
for step in range(3):
    x.fill_(step)
    graph.replay()  # finds output-reuse
    kept.append(y)
assert [value.item() for value in kept] == [4, 4, 4]
