"""Two streams whose halves overlap by one element."""

import torch

x = torch.zeros(8, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(torch.cuda.Stream()):
    x[:5].fill_(1)
with torch.cuda.stream(torch.cuda.Stream()):
    x[4:].fill_(2)  # finds device-race
torch.cuda.synchronize()
