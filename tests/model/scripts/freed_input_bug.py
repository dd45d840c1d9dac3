"""An input that dies with the function which captured: its block goes to the next tensor, and replays read that one."""

import torch


def capture():
    x = torch.ones(4, device="cuda")  # finds freed-memory
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    return graph, y


graph, y = capture()
other = torch.full((4,), 7.0, device="cuda")
graph.replay()
assert y.tolist() == [14, 14, 14, 14]
