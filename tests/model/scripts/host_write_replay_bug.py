"""A captured copy reads its pinned source at each replay, which the host does not wait for."""

import torch

host = torch.zeros(4).pin_memory()
x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.copy_(host, non_blocking=True)
    y = x + 1
for step in range(3):
    host.fill_(step)  # finds host-write-race
    graph.replay()
torch.cuda.synchronize()
