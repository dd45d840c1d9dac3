"""A result copied to pinned memory without a wait, and read at once."""

import torch

x = torch.ones(4, device="cuda")
host = torch.zeros(4).pin_memory()
torch.cuda._sleep(10**8)
host.copy_(x, non_blocking=True)
assert host.sum().item() == 0  # finds host-read-race
torch.cuda.synchronize()
