"""What graphs hold, in exact MiB: pools, segments, what comes back and what does not.

The allocator takes memory from the driver in segments: 2 MiB for requests up to 1 MiB, 20 MiB for requests below 10 MiB,
and from there on the request itself, rounded up to 2 MiB. A graph's segments form a pool of its own. No eager tensor is
ever placed there, and they stay for as long as a graph holds the pool, whatever has become of the tensors. So the numbers
that one knows from eager code mean something else: `memory_allocated` counts tensors, not what replays use. All numbers
here are relative to what a case began with, eager ones to an empty cache; most are of tensors of 16 MiB, which have a
segment each.

Mechanism: held memory
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#graph-memory-management
"""

import torch

MIB = 2**20
ELEMENTS = 4 * MIB  # 16 MiB of float32


def _large():
    return torch.ones(ELEMENTS, device="cuda")


def _settle():
    """A graph to be kept: the first capture may take a few bytes for generators, which a case does not want to count."""
    x, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    return graph, x, y


def _reserved():
    return torch.cuda.memory_reserved() / MIB


def _pool(graph):
    """MiB of the segments in the graph's pool."""
    return sum(segment["total_size"] for segment in torch.cuda.memory_snapshot(graph.pool())) / MIB


def _four_steps(x):
    """Each step's result replaces the one before, so that two live at a time."""
    for _ in range(4):
        x = x + 1
    return x


def segment_sizes_eager():
    """Tensors of 1, a little over 1, 8, 10 and a little over 10 MiB reserve 2, 20, 20, 10 and 12 MiB, each alone."""
    for size in (MIB, MIB + 1, 8 * MIB, 10 * MIB, 10 * MIB + 1):
        torch.cuda.empty_cache()
        before, x = _reserved(), torch.empty(size, dtype=torch.uint8, device="cuda")
        yield "replay", _reserved() - before
        del x


def segment_sizes():
    """A graph that holds one such tensor reserves as much: 2, 20, 20, 10 and 12 MiB."""
    for size in (MIB, MIB + 1, 8 * MIB, 10 * MIB, 10 * MIB + 1):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x = torch.zeros(size, dtype=torch.uint8, device="cuda")
        yield "replay", _pool(graph)
        del x, graph


def small_outputs_eager():
    """Ten results of one element lie in one segment of 2 MiB."""
    torch.cuda.empty_cache()
    before, x = _reserved(), torch.zeros(1, device="cuda")
    outputs = [x + i for i in range(10)]
    yield "replay", _reserved() - before
    del outputs


def _ten_graphs(pool):
    x, graphs, outputs = torch.zeros(1, device="cuda"), [torch.cuda.CUDAGraph() for _ in range(10)], []
    for i, graph in enumerate(graphs):
        with torch.cuda.graph(graph, pool=pool):
            outputs.append(x + i)
    return graphs, outputs


def small_outputs_bug():
    """Ten graphs with a result of one element hold 2 MiB.

    Seen instead: 20 MiB. A pool is made of segments, and the smallest has 2 MiB.
    """
    graphs, _outputs = _ten_graphs(pool=None)
    yield "replay", sum(_pool(graph) for graph in graphs)


def small_outputs_fix():
    """Ten graphs that share a pool hold 2 MiB."""
    graphs, _outputs = _ten_graphs(pool=torch.cuda.graph_pool_handle())
    yield "replay", _pool(graphs[0])


def intermediates_eager():
    """Four steps in a row need two tensors of 16 MiB at a time: 32 MiB."""
    torch.cuda.empty_cache()
    x, before = _large(), _reserved()
    y = _four_steps(x)
    yield "replay", _reserved() - before
    del y


def intermediates():
    """A graph of the four steps holds 32 MiB: within a capture memory is reused as in eager mode."""
    x, graph = _large(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _y = _four_steps(x)
    yield "replay", _pool(graph)


def intermediates_bug():
    """The intermediate results of a capture, kept in a list until it ends, are given back when the list goes: 32 MiB.

    Seen instead: 64 MiB for as long as the graph lives. Four tensors lived at once during the capture.
    """
    steps, graph = [_large()], torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(4):
            steps.append(steps[i] + 1)
    del steps[1:]
    yield "replay", _pool(graph)


def bucket_order_eager():
    """Buckets of 48, 24 and 12 MiB, run one after the other, use the memory of the first: 48 MiB, and 2 for the results."""
    torch.cuda.empty_cache()
    buffer, before = torch.ones(12 * MIB, device="cuda"), _reserved()
    _results = [(buffer[: size * MIB // 4] * 2)[:1].clone() for size in (48, 24, 12)]
    yield "replay", _reserved() - before


def _captured_buckets(sizes):
    buffer, pool, graphs, results = torch.ones(12 * MIB, device="cuda"), torch.cuda.graph_pool_handle(), [], []
    for size in sizes:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            results.append((buffer[: size * MIB // 4] * 2)[:1].clone())
    yield "replay", _pool(graphs[0])


def bucket_order_bug():
    """Buckets of 12, 24 and 48 MiB that share a pool hold what the largest needs: 50 MiB.

    Seen instead: 86 MiB. Captured from small to large, none fits into what those before have left, and each takes a
    segment of its own.
    """
    yield from _captured_buckets((12, 24, 48))


def bucket_order_fix():
    """Captured from large to small they hold 50 MiB."""
    yield from _captured_buckets((48, 24, 12))


def dropped_output_eager():
    """A result that is dropped is 16 MiB less allocated."""
    x = _large()
    y = x + 1
    with_y = torch.cuda.memory_allocated()
    del y
    yield "replay", (with_y - torch.cuda.memory_allocated()) / MIB


def dropped_output():
    """A graph's output that is dropped is 16 MiB less allocated, though each replay goes on writing there.

    The pool holds 16 MiB before and after, as the evidence says.
    """
    x, graph = _large(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    with_y = torch.cuda.memory_allocated()
    yield "pool_mib", _pool(graph)
    del y
    yield "pool_mib", _pool(graph)
    yield "replay", (with_y - torch.cuda.memory_allocated()) / MIB


def peak_eager():
    """Four steps raise the peak of what is allocated by 32 MiB."""
    x = _large()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    _four_steps(x)
    yield "replay", (torch.cuda.max_memory_allocated() - before) // MIB


def _peak(of_capture):
    """By how much the capture of four steps, or a replay, raises the peak; below a MiB does not count."""
    x, graph = _large(), torch.cuda.CUDAGraph()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with torch.cuda.graph(graph):
        y = _four_steps(x)
    if not of_capture:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        graph.replay()
    yield "replay", (torch.cuda.max_memory_allocated() - before) // MIB
    del y


def peak_bug():
    """A replay of four steps raises the peak by 32 MiB.

    Seen instead: 0. A replay allocates nothing, so the allocator knows nothing of it. Whoever sizes a cache by the peak of a
    step takes the step for free.
    """
    yield from _peak(of_capture=False)


def peak_fix():
    """The capture of four steps raises the peak by 32 MiB: measured there it is right."""
    yield from _peak(of_capture=True)


def cached_warmup_eager():
    """Warm-up and run use the same 16 MiB."""
    torch.cuda.empty_cache()
    x, before = _large(), _reserved()
    for _ in range(2):
        y = x + 1
        del y
    yield "replay", _reserved() - before


def cached_warmup_bug():
    """A capture that is begun by hand uses the memory of the warm-up before it: 16 MiB.

    Seen instead: 32 MiB. What the warm-up has left in the cache is the default pool's, and the capture may not use it.
    """
    _kept, x = _settle(), _large()
    before, graph = _reserved(), torch.cuda.CUDAGraph()
    y = x + 1
    del y
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        _y = x + 1
        graph.capture_end()
    yield "replay", _reserved() - before


def cached_warmup_fix():
    """`torch.cuda.graph` empties the cache before it begins, so warm-up and capture need 16 MiB in all."""
    _kept, x = _settle(), _large()
    before, graph = _reserved(), torch.cuda.CUDAGraph()
    y = x + 1
    del y
    with torch.cuda.graph(graph):
        _y = x + 1
    yield "replay", _reserved() - before


def _use_on(side, t, out):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out.copy_(t[:1])


def record_stream_eager():
    """Three tensors of 16 MiB, each dropped when a side stream is done with it, use the same memory: 16 MiB."""
    torch.cuda.empty_cache()
    x, out, side, before = _large(), torch.zeros(1, device="cuda"), torch.cuda.Stream(), _reserved()
    for _ in range(3):
        t = x * 2
        _use_on(side, t, out)
        torch.cuda.current_stream().wait_stream(side)
        del t
    yield "replay", _reserved() - before


def _captured_rounds(join):
    """Three rounds of the same in a capture; between two of them either join the streams or leave it to `record_stream`."""
    x, out, side, graph = _large(), torch.zeros(1, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            t = x * 2
            _use_on(side, t, out)
            if join:
                torch.cuda.current_stream().wait_stream(side)
            else:
                t.record_stream(side)
            del t
        torch.cuda.current_stream().wait_stream(side)
    yield "replay", _pool(graph)


def record_stream_bug():
    """Three tensors that a side stream uses, dropped after `record_stream`, use the same memory in a capture: 16 MiB.

    Seen instead: 48 MiB. Whether the side stream is done with a block is asked by an event, and events cannot be asked
    while a graph is captured, so such a block comes back only when the capture has ended. An allocator option,
    graph_capture_record_stream_reuse, lets torch look at the graph instead.
    """
    yield from _captured_rounds(join=False)


def record_stream_fix():
    """Where the streams are joined before a tensor is dropped, no `record_stream` is needed: 16 MiB."""
    yield from _captured_rounds(join=True)


def generator_blocks_eager():
    """Nothing is allocated that no tensor of the caller's holds: 0 bytes, twice."""
    yield "replay", 0
    yield "replay", 0


def generator_blocks():
    """Two captures without random numbers, whose outputs were dropped, leave no byte allocated: 0 and 0.

    2.14 and later. Before, each capture prepared a seed and an offset on the GPU, 512 bytes each, whether it drew numbers or
    not: up to 2.11 the first graph for all that follow (1024 and 0), in 2.12 and 2.13 each graph for itself (1024 and 1024).
    """
    x, graphs = torch.zeros(1, device="cuda"), [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()]
    for graph in graphs:
        before = torch.cuda.memory_allocated()
        with torch.cuda.graph(graph):
            y = x + 1
        del y
        yield "replay", torch.cuda.memory_allocated() - before
