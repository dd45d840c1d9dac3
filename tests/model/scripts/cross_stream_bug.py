"""A tensor used on another stream dies, and its own stream hands the block on."""

import torch

side = torch.cuda.Stream()
x = torch.ones(4, device="cuda")
loaded = x * 2  # Else the first launch below would wait for the spin.
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.cuda._sleep(10**8)
    y = x * 2  # finds cross-stream-reuse
del x
other = torch.full((4,), 9.0, device="cuda")
torch.cuda.synchronize()
assert y.tolist() == [18] * 4
