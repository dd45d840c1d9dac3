"""The same three in the order of their captures, again and again."""

import torch

x = torch.full((4,), 2.0, device="cuda")
graphs = [torch.cuda.CUDAGraph() for _ in range(3)]
with torch.cuda.graph(graphs[0]):
    y0 = x * 3
with torch.cuda.graph(graphs[1], pool=graphs[0].pool()):
    y1 = y0 + 1
del y0
with torch.cuda.graph(graphs[2], pool=graphs[0].pool()):
    y2 = x * 0
for step in range(3):
    x.fill_(step)
    for graph in graphs:
        graph.replay()
    assert y1.tolist() == [3 * step + 1] * 4
