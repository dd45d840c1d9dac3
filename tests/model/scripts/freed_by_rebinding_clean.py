"""New data copied into the static input."""

import torch

state = {"x": torch.ones(4, device="cuda")}
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = state["x"] + 1
for step in range(3):
    state["x"].copy_(torch.full((4,), float(step), device="cuda"))
    graph.replay()
    assert y.tolist() == [step + 1.0] * 4
