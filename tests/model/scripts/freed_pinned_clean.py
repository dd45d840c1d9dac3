"""The same with the source kept, and rewritten only when the copy has run."""

import torch

host = torch.ones(4).pin_memory()
x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.copy_(host, non_blocking=True)
for step in range(3):
    host.fill_(step)
    graph.replay()
    assert x.tolist() == [step] * 4
