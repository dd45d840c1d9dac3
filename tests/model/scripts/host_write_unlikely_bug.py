"""A write long after the copy was queued: right in every run so far, and nothing makes it so."""

import time

import torch

host = torch.ones(4).pin_memory()
x = torch.zeros(4, device="cuda")
torch.cuda.synchronize()
x.copy_(host, non_blocking=True)
time.sleep(0.2)
host.fill_(2)  # finds host-write-race
assert x.tolist() == [1] * 4
