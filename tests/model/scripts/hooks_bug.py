"""A hook set inside a graphed module: the module's call replays a graph, and nothing calls the hook."""

import torch

net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).cuda()
x = torch.ones(2, 4, device="cuda")
net = torch.cuda.make_graphed_callables(net, (x,))
called = []
net[0].register_forward_hook(lambda *_: called.append(1))  # finds hooks-not-called
net(x)
assert called == []
