"""Padding and buckets: what a graph computes from the part of its buffers that a short batch does not fill.

A graph has one size, so a batch is padded to the size of the next bucket. The padding takes part in everything: a sum
reads it, a mean divides by it, a softmax gives it weight, a scatter writes it somewhere. What lies there is what the last
longer batch left. None of this raises. Whatever must not depend on the padding has to be told on the GPU how long the batch
really is, or be given padding that cannot matter.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/torch-cuda-graph/handling-dynamic-patterns.html
"""

import torch

BUCKET = 8
BATCHES = [[1, 2, 3, 4, 5, 6], [7, 8], [-3, -2, -1]]  # Longer, then shorter, then negative.


def _batches():
    return [torch.tensor(batch, device="cuda", dtype=torch.float32) for batch in BATCHES]


def _captured(compute, padding=0.0):
    """The graph of `compute(x, length)` for one bucket, with its buffers; the length is a tensor on the GPU."""
    x, length = torch.full((BUCKET,), padding, device="cuda"), torch.zeros((), device="cuda", dtype=torch.int64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compute(x, length)
    return graph, x, length, y


def _run(compute, padding=0.0, clean=True):
    """Copy each batch to the front of the buffer, fill the rest with the padding, replay, and yield the output."""
    graph, x, length, y = _captured(compute, padding)
    for batch in _batches():
        n = len(batch)
        x[:n].copy_(batch)
        length.fill_(n)
        if clean:
            x[n:].fill_(padding)
        graph.replay()
        yield "replay", y


def _mask(x, length):
    return torch.arange(BUCKET, device="cuda") < length


def stale_tail_eager():
    """The sums of the three batches: 21, 15, -6."""
    for batch in _batches():
        yield "replay", batch.sum()


def stale_tail_bug():
    """A sum over a bucket is the sum of the batch that was copied into it: 21, 15, -6.

    Seen instead: 21, 33, 9. The second batch has two elements, and behind them lie 3, 4, 5 and 6 of the first.
    """
    yield from _run(lambda x, length: x.sum(), clean=False)


def stale_tail_fix_clear():
    """With the rest of the buffer set to zero before each replay the sums are 21, 15, -6."""
    yield from _run(lambda x, length: x.sum())


def stale_tail_fix_mask():
    """With a mask made on the GPU from the batch's length the sums are 21, 15, -6, whatever lies behind the batch."""
    yield from _run(lambda x, length: x.masked_fill(~_mask(x, length), 0).sum(), clean=False)


def stale_tail_bug_python_length():
    """A mask that is made from the batch's length covers what lies behind it: 21, 15, -6.

    Seen instead: 21, 33, 9. The length was a Python number when the graph was captured, 6 for good, so the mask lets the
    tail of the first batch pass.
    """
    longest = len(BATCHES[0])
    yield from _run(lambda x, length: x.masked_fill(~_mask(x, longest), 0).sum(), clean=False)


def mean_eager():
    """The means of the three batches: 3.5, 7.5, -2."""
    for batch in _batches():
        yield "replay", batch.mean()


def mean_bug():
    """The mean over a bucket padded with zeros is the batch's: 3.5, 7.5, -2.

    Seen instead: 2.625, 1.875, -0.75. The zeros add nothing, and are counted: each sum is divided by 8.
    """
    yield from _run(lambda x, length: x.mean())


def mean_fix():
    """The sum, divided by a length that lies on the GPU, gives 3.5, 7.5, -2."""
    yield from _run(lambda x, length: x.sum() / length)


def maximum_eager():
    """The largest elements of the three batches: 6, 8, -1."""
    for batch in _batches():
        yield "replay", batch.max()


def maximum_bug():
    """The maximum over a bucket padded with zeros is the batch's: 6, 8, -1.

    Seen instead: 6, 8, 0. As long as the numbers are positive nothing is amiss; where all are negative the padding wins.
    """
    yield from _run(lambda x, length: x.max())


def maximum_fix():
    """Padded with minus infinity, which no element is below, the maxima are 6, 8, -1."""
    yield from _run(lambda x, length: x.max(), padding=-torch.inf)


def softmax_eager():
    """Each batch's attention weights add up to 100 per cent."""
    for batch in _batches():
        yield "replay", (100 * batch.softmax(0).sum()).round()


def _share_of_the_batch(x, length):
    """What the batch's own elements get of a softmax over the bucket, in per cent."""
    return (100 * x.softmax(0).masked_fill(~_mask(x, length), 0).sum()).round()


def softmax_bug():
    """A softmax over a bucket padded with zeros leaves the batch's weights as they are: 100 per cent.

    Seen instead: 10 for the third batch, whose numbers lie below the zeros, which take the rest. The numbers of the first
    two are so large that one does not notice.
    """
    yield from _run(_share_of_the_batch)


def softmax_fix():
    """Padded with minus infinity, whose exponential is zero, each batch's weights add up to 100 per cent."""
    yield from _run(_share_of_the_batch, padding=-torch.inf)


def broadcast_eager():
    """The sum of one element, 5, in a bucket of eight."""
    yield "replay", torch.tensor([5.0], device="cuda").sum()


def _sum_of_one(place):
    """Put a batch of one element into the buffer by `place(x, batch)`, replay, and yield the sum."""
    graph, x, _, y = _captured(lambda x, length: x.sum())
    place(x, torch.tensor([5.0], device="cuda"))
    graph.replay()
    yield "replay", y


def broadcast_bug():
    """A batch of one element that is copied into a bucket of eight counts once: 5.

    Seen instead: 40. `copy_` repeats a single element to fill the target, as all of torch does, where any other length that
    does not fit would have raised.
    """
    yield from _sum_of_one(lambda x, batch: x.copy_(batch))


def broadcast_fix():
    """Copied into a slice of its own length it counts once: 5."""
    yield from _sum_of_one(lambda x, batch: x[: len(batch)].copy_(batch))


def oversize_eager():
    """The sum of nine ones, in eager mode, is 9."""
    yield "replay", torch.ones(BUCKET + 1, device="cuda").sum()


def oversize_bug():
    """A batch that is longer than the longest bucket is summed: 9.

    Seen instead: an error from `copy_`, that 8 elements do not take 9. Of all mistakes with buckets it is the one that tells.
    """
    graph, x, _, y = _captured(lambda x, length: x.sum())
    x.copy_(torch.ones(BUCKET + 1, device="cuda"))
    graph.replay()
    yield "replay", y


def oversize_fix():
    """A batch for which there is no bucket, sent through the same function in eager mode, is summed: 9."""
    graph, x, _, y = _captured(lambda x, length: x.sum())
    batch = torch.ones(BUCKET + 1, device="cuda")
    if len(batch) <= BUCKET:
        x[: len(batch)].copy_(batch)
        graph.replay()
    else:
        y = batch.sum()
    yield "replay", y


def scatter_eager():
    """A cache of four rows after a batch of four writes and a batch of two: 20, 21, 12, 13."""
    cache = torch.zeros(4, device="cuda")
    cache[:4] = torch.tensor([10.0, 11, 12, 13], device="cuda")
    cache[:2] = torch.tensor([20.0, 21], device="cuda")
    yield "replay", cache


def _scatter(spare):
    """A graph that writes up to four values into the rows that it is told; rows for which there is no value go to `spare`."""
    cache, values = torch.zeros(5, device="cuda"), torch.zeros(4, device="cuda")
    rows = torch.zeros(4, device="cuda", dtype=torch.int64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        cache.index_copy_(0, rows, values)
    for batch in ([10.0, 11.0, 12.0, 13.0], [20.0, 21.0]):
        n = len(batch)
        values.zero_()[:n].copy_(torch.tensor(batch, device="cuda"))
        rows[:n].copy_(torch.arange(n, device="cuda"))
        if spare is not None:
            rows[n:].fill_(spare)
        graph.replay()
    yield "replay", cache[:4]


def scatter_bug():
    """A batch of two leaves the rows alone that it does not write: 20, 21, 12, 13.

    Seen instead: 20, 21, 0, 0. The buffer of row numbers still ends with those of the batch of four, so the padding, though
    it was cleared, was written over live rows. A cache of keys and values is lost this way.
    """
    yield from _scatter(spare=None)


def scatter_fix():
    """With a spare row for the padding to be written to, the rows are 20, 21, 12, 13."""
    yield from _scatter(spare=4)


def kept_output_eager():
    """The results of a short batch and of a long one: 2, and 4 for each element."""
    yield "replay", torch.full((2,), 1.0, device="cuda") * 2
    yield "replay", torch.full((8,), 2.0, device="cuda") * 2


def _two_buckets(keep):
    """Buckets of 8 and 2 in one pool, the larger captured first; what `keep` makes of an output is looked at at the end."""
    graphs, pool = {}, torch.cuda.graph_pool_handle()
    for size in (8, 2):
        x, graph = torch.zeros(size, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            y = (x + 1) * 2 - 2
        graphs[size] = graph, x, y
    results = []
    for size, value in ((2, 1.0), (8, 2.0)):
        graph, x, y = graphs[size]
        x.fill_(value)
        graph.replay()
        results.append(keep(y))
    for result in results:
        yield "replay", result


def kept_output_bug():
    """The result of a short batch is still there when a long one has run: 2 and 2, then eight fours.

    Seen instead: 6 and 6 first. The small bucket, captured later into the same pool, has its output where the large one has
    an intermediate result.
    """
    yield from _two_buckets(keep=lambda y: y)


def kept_output_fix():
    """Cloned before the next bucket runs, the result is 2 and 2, then eight fours."""
    yield from _two_buckets(keep=torch.clone)
