"""The same without non_blocking=True."""

import torch

x = torch.ones(4, device="cuda") * 3
y = x.to("cpu")
assert y.tolist() == [3] * 4
