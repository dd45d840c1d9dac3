"""The same with the stream forked from the capture and joined again."""

import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        doubled = x * 2
    torch.cuda.current_stream().wait_stream(side)
    y = doubled + 1
x.fill_(5)
graph.replay()
assert y.tolist() == [11] * 4
