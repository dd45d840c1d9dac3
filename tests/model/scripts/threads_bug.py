"""A thread that uses a tensor on a stream of its own, with the main thread's stream in no order."""

import threading

import torch

x = torch.zeros(4, device="cuda")
torch.cuda.synchronize()


def work():
    with torch.cuda.stream(torch.cuda.Stream()):
        x.add_(1)


thread = threading.Thread(target=work)
thread.start()
thread.join()
x.mul_(2)  # finds device-race
torch.cuda.synchronize()
