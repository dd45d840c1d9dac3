"""A module graphed by make_graphed_callables, trained with GradScaler and autocast."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cuda")
x = torch.randn(16, 4, device="cuda")
with torch.autocast("cuda", cache_enabled=False):
    graphed = torch.cuda.make_graphed_callables(net, (x,))
losses = []
for _ in range(15):
    x = torch.randn(16, 4, device="cuda")
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", cache_enabled=False):
        loss = torch.nn.functional.mse_loss(graphed(x).float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
assert losses[-1] < losses[0]
