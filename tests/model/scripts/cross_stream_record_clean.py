"""The same with record_stream()."""

import torch

side = torch.cuda.Stream()
x = torch.ones(4, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    torch.cuda._sleep(10**8)
    y = x * 2
x.record_stream(side)
del x
other = torch.full((4,), 9.0, device="cuda")
torch.cuda.synchronize()
again = torch.full((4,), 8.0, device="cuda")
assert y.tolist() == [2] * 4
