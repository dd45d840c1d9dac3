"""The same with a wait for the copy before each write."""

import torch

host = torch.zeros(4).pin_memory()
rows = torch.zeros(4, 4, device="cuda")
copied = torch.cuda.Event()
torch.cuda._sleep(10**8)
for step in range(4):
    copied.synchronize()
    host.fill_(step)
    rows[step].copy_(host, non_blocking=True)
    copied.record()
torch.cuda.synchronize()
assert rows[:, 0].tolist() == [0, 1, 2, 3]
