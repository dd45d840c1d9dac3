"""Autocast's cached cast of a weight, made by a warmup that the capture shares an autocast block with."""

import torch

weight = torch.ones(4, 4, device="cuda", requires_grad=True)
x = torch.ones(4, 4, device="cuda")
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
with torch.autocast("cuda", dtype=torch.float16):
    torch.mm(x, weight)  # finds freed-memory
    with torch.cuda.graph(graph, stream=side):
        y = torch.mm(x, weight)
graph.replay()
y.tolist()
