"""A pinned source of a captured copy that nobody keeps."""

import torch

host = torch.ones(4).pin_memory()  # finds freed-memory
x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.copy_(host, non_blocking=True)
del host
graph.replay()
assert x.tolist() == [1, 1, 1, 1]
