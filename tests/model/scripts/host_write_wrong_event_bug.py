"""An event that was recorded before the copy says nothing of it."""

import torch

host = torch.ones(4).pin_memory()
x = torch.zeros(4, device="cuda")
event = torch.cuda.Event()
event.record()
x.copy_(host, non_blocking=True)
event.synchronize()
host.fill_(2)  # finds host-write-race
torch.cuda.synchronize()
