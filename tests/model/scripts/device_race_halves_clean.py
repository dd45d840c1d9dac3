"""Two streams that each have a half of a tensor."""

import torch

x = torch.zeros(8, device="cuda")
columns = torch.zeros(4, 8, device="cuda")
torch.cuda.synchronize()
for number in range(2):
    with torch.cuda.stream(torch.cuda.Stream()):
        x[4 * number : 4 * number + 4] += 1
        columns[:, 4 * number : 4 * number + 4] += 1
torch.cuda.synchronize()
assert x.tolist() == [1] * 8
