"""A hook set on the graphed module itself."""

import torch

net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).cuda()
x = torch.ones(2, 4, device="cuda")
net = torch.cuda.make_graphed_callables(net, (x,))
called = []
net.register_forward_hook(lambda *_: called.append(1))
net(x)
assert called == [1]
