"""Dropout and a generator of one's own in a graph, reseeded between replays."""

import torch

generator = torch.Generator("cuda").manual_seed(3)
x = torch.ones(64, device="cuda")
graph = torch.cuda.CUDAGraph()
graph.register_generator_state(generator)
with torch.cuda.graph(graph):
    y = torch.nn.functional.dropout(x, 0.5)
    z = torch.rand(8, device="cuda", generator=generator)
seen = []
for _ in range(2):
    generator.manual_seed(3)
    graph.replay()
    seen.append(z.tolist())
assert seen[0] == seen[1]
