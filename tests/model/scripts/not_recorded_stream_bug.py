"""Work sent to a stream of its own in the captured region runs once, and no replay does it again."""

import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph, capture_error_mode="relaxed"):
    with torch.cuda.stream(side):
        doubled = x * 2  # finds not-recorded
    y = doubled + 1
torch.cuda.synchronize()
x.fill_(5)
graph.replay()
assert y.tolist() == [3] * 4
