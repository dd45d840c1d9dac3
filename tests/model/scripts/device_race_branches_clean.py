"""Two branches that read one tensor and write one each."""

import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        a = x + 1
    b = x * 3
    torch.cuda.current_stream().wait_stream(side)
    y = a + b
graph.replay()
assert y.tolist() == [5] * 4
