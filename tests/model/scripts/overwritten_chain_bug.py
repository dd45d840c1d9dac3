"""Two graphs of one pool where the second reads the first one's output, which a third has written over."""

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
graphs[0].replay()
graphs[2].replay()  # finds overwritten-by-graph
graphs[1].replay()
assert y1.tolist() == [1] * 4
