"""An event that was asked until it had come is a wait too."""

import torch

x = torch.ones(4, device="cuda")
host = torch.zeros(4).pin_memory()
host.copy_(x, non_blocking=True)
done = torch.cuda.Event()
done.record()
while not done.query():
    pass
assert host.tolist() == [1] * 4
