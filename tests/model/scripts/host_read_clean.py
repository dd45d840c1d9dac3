"""The same with a wait for the stream."""

import torch

x = torch.ones(4, device="cuda")
host = torch.zeros(4).pin_memory()
torch.cuda._sleep(10**8)
host.copy_(x, non_blocking=True)
torch.cuda.current_stream().synchronize()
assert host.sum().item() == 4
