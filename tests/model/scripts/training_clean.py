"""A training loop in one graph: warmup on a side stream, static inputs, a capturable optimizer."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, capturable=True)
x, target = torch.randn(16, 4, device="cuda"), torch.randn(16, 1, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(net(x), target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
losses = []
for _ in range(20):
    x.copy_(torch.randn(16, 4))
    target.copy_(x.sum(1, keepdim=True))
    graph.replay()
    losses.append(loss.item())
assert losses[-1] < losses[0]
