"""Three streams in a row: each waits for the one before, so the third knows of the first."""

import torch

x = torch.zeros(4, device="cuda")
streams = [torch.cuda.Stream() for _ in range(3)]
before = torch.cuda.current_stream()
for number, stream in enumerate(streams):
    stream.wait_stream(before)
    with torch.cuda.stream(stream):
        x += number
    before = stream
torch.cuda.current_stream().wait_stream(before)
assert x.tolist() == [3] * 4
