"""Graphs that come and go, reset and deleted, each with a pool that the next one takes over."""

import torch

x = torch.ones(4, device="cuda")
for step in range(4):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * step
    graph.replay()
    assert y.tolist() == [step] * 4
    if step % 2:
        graph.reset()
    del graph, y
    torch.cuda.empty_cache()
