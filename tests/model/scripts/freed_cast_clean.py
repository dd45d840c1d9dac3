"""Autocast entered inside the capture, so that the cast is recorded."""

import torch

weight = torch.ones(4, 4, device="cuda", requires_grad=True)
x = torch.ones(4, 4, device="cuda")
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
with torch.autocast("cuda", dtype=torch.float16):
    torch.mm(x, weight)
with torch.cuda.graph(graph, stream=side), torch.autocast("cuda", dtype=torch.float16):
    y = torch.mm(x, weight)
graph.replay()
assert y.tolist() == [[4] * 4] * 4
