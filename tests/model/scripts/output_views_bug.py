"""Views of an output collected over replays."""

import torch

x = torch.zeros(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
kept = {}
for step in range(4):
    x.fill_(step)
    graph.replay()  # finds output-reuse
    kept[step] = y[:2]
assert torch.stack(list(kept.values())).tolist() == [[6, 6]] * 4
