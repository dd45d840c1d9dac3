"""A freed input whose block nobody took yet: values are right so far, and the next allocation may change that."""

import torch

x = torch.ones(4, device="cuda")  # finds freed-memory
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
del x
graph.replay()
assert y.tolist() == [2, 2, 2, 2]
