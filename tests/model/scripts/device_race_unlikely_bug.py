"""The same, a tenth of a second apart: it never fails here, and nothing forbids that it does."""

import time

import torch

side = torch.cuda.Stream()
x = torch.zeros(4, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.fill_(1)
time.sleep(0.1)
y = x + 0  # finds device-race
torch.cuda.synchronize()
assert y.tolist() == [1] * 4
