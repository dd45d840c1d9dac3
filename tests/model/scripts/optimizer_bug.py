"""A gradient replaced after the capture: the line named is the script's, not one of torch's optimizer."""

import torch

weight = torch.ones(4, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
weight.grad = torch.ones(4, device="cuda")  # finds freed-memory
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    optimizer.step()
weight.grad = torch.zeros(4, device="cuda")
graph.replay()
