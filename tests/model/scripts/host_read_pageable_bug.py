"""A result sent to ordinary memory with non_blocking=True, which gives no word of when it has come."""

import torch

x = torch.ones(4, device="cuda") * 3
y = x.to("cpu", non_blocking=True)
print(y.tolist())  # finds host-read-race
