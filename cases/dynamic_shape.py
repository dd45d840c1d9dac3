"""A graph does the amount of work that it was captured for.

Grid size and element count are part of each recorded launch, and the buffers were allocated for that size. An input of
another length is not an error: what does not fit is simply not computed. So a graph serves one shape, or an input is
brought to a shape for which there is a graph.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

LENGTHS = [3, 8, 5]  # Longer, then shorter: what a short input leaves of a longer one's tail must not show.
MAXIMUM = 1024
BUCKETS = [4, 8, 16]


def _batches():
    """Three inputs of different lengths with different numbers: 1, 2, 3; then 11 to 18; then 21 to 25."""
    return [torch.arange(1, n + 1, device="cuda", dtype=torch.float32) + 10 * i for i, n in enumerate(LENGTHS)]


def _model(x):
    return x * 2


def eager():
    """Twice an input of eight fives is eight tens, one value an element."""
    for value in _model(torch.full((8,), 5, device="cuda", dtype=torch.int32)):
        yield "replay", value


def bug():
    """Eight elements go in, and eight come out.

    Seen instead: four. The graph was captured for four, four are copied in, and no element after the fourth has a place
    to be read from or written to.
    """
    x = torch.ones(4, device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _model(x)
    large = torch.full((8,), 5, device="cuda", dtype=torch.int32)
    x.copy_(large[: len(x)])
    graph.replay()
    for value in y:
        yield "replay", value


def fix_eager():
    """Twice each input, whatever its length."""
    for batch in _batches():
        yield "replay", _model(batch)


def fix_pad():
    """Inputs of 3, 8 and 5 elements, padded with zeros to one maximum, come out doubled at their own length.

    The price is work on zeros. The result is trimmed and cloned, for the next replay writes over it.
    """
    static_input = torch.zeros(MAXIMUM, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_output = _model(static_input)
    results = []
    for batch in _batches():
        n = len(batch)
        static_input[:n].copy_(batch)
        static_input[n:].zero_()
        graph.replay()
        results.append(static_output[:n].clone())
    for result in results:
        yield "replay", result


def fix_bucket():
    """Inputs of 3, 8 and 5 elements, each sent to the smallest graph that holds it, come out doubled.

    One graph a size class; here buckets of 4, 8 and 8 serve. An input larger than the largest bucket has no graph.
    """
    graphs = {}
    for size in BUCKETS:
        static_input, graph = torch.zeros(size, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static_output = _model(static_input)
        graphs[size] = graph, static_input, static_output
    results = []
    for batch in _batches():
        n = len(batch)
        size = next(size for size in BUCKETS if size >= n)
        graph, static_input, static_output = graphs[size]
        static_input[:n].copy_(batch)
        static_input[n:].zero_()
        graph.replay()
        results.append((size, static_output[:n].clone()))
    for size, result in results:
        yield "bucket", size
        yield "replay", result
