"""Two buffers in turns with one event too few: the wait is for the turn before last's copy of the other buffer."""

import torch

x = torch.zeros(2, 4, device="cuda")
hosts = [torch.zeros(4).pin_memory() for _ in range(2)]
done = [torch.cuda.Event() for _ in range(2)]
for step in range(6):
    turn = step % 2
    if step >= 3:
        done[turn].synchronize()
    hosts[turn].fill_(step)  # finds host-write-race
    x[turn].copy_(hosts[turn], non_blocking=True)
    done[turn].record()
torch.cuda.synchronize()
