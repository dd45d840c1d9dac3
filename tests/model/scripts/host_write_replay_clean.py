"""The same with two buffers in turns and an event for each."""

import torch

x = torch.zeros(4, device="cuda")
turns = []
for _ in range(2):
    host, graph = torch.zeros(4).pin_memory(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
        y = x + 1
    turns.append((host, graph, y, torch.cuda.Event()))
for step in range(6):
    host, graph, y, done = turns[step % 2]
    done.synchronize()
    host.fill_(step)
    graph.replay()
    done.record()
torch.cuda.synchronize()
assert turns[1][2].tolist() == [6] * 4
