"""Two branches of one graph that write and read the same tensor: a replay may run them in either order."""

import torch

x = torch.zeros(4, device="cuda")
side = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.add_(1)
    y = x * 2
    torch.cuda.current_stream().wait_stream(side)
graph.replay()  # finds device-race
torch.cuda.synchronize()
