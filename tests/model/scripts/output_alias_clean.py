"""An output kept under one name, read after each replay, and printed in the end: its last value is meant."""

import torch

x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1
total = torch.zeros(4, device="cuda")
best = None
for step in range(5):
    x.fill_(step)
    graph.replay()
    out = y
    total += out
    best = out.max().item() if best is None else max(best, out.max().item())
assert out.tolist() == [5] * 4
assert total.tolist() == [15] * 4
assert best == 5
