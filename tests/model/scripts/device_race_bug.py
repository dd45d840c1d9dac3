"""A stream reads what another one writes, in no order."""

import torch

side = torch.cuda.Stream()
x = torch.zeros(4, device="cuda").fill_(0)
loaded = x + 0  # Else the first launch below would wait for the spin.
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.cuda._sleep(10**8)
    x.fill_(1)
y = x + 0  # finds device-race
torch.cuda.synchronize()
assert y.tolist() == [0] * 4
