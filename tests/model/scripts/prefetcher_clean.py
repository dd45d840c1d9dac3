"""A prefetcher: batches go to the GPU on a stream of their own, the next while the last is worked on."""

import torch


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((4,), float(index))


copying = torch.cuda.Stream()


def prefetched(loader):
    ready = None
    for batch in loader:
        with torch.cuda.stream(copying):
            coming = batch.to("cuda", non_blocking=True)
        if ready is not None:
            torch.cuda.current_stream().wait_stream(copying)
            ready.record_stream(torch.cuda.current_stream())
            yield ready
        ready = coming
    torch.cuda.current_stream().wait_stream(copying)
    ready.record_stream(torch.cuda.current_stream())
    yield ready


x = torch.zeros(2, 4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x.sum()
sums = []
for batch in prefetched(torch.utils.data.DataLoader(Batches(), batch_size=2, pin_memory=True)):
    x.copy_(batch)
    graph.replay()
    sums.append(y.item())
assert sums == [4, 20, 36]
