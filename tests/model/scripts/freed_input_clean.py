"""The same with the input kept."""

import torch


def capture():
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    return graph, x, y


graph, x, y = capture()
other = torch.full((4,), 7.0, device="cuda")
graph.replay()
assert y.tolist() == [2, 2, 2, 2]
