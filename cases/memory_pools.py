"""Who holds a graph's memory, who else may use it, and when it goes.

A capture allocates from a pool. The pool is counted: each graph that uses it holds it, and so does a `torch.cuda.MemPool`
object. While anyone does, its segments stay, free or not, and nobody outside is given a block of it. When the last holder
goes, free segments can be given back; blocks that tensors still hold stay valid. `torch.cuda.use_mem_pool` sends the
allocations of one thread to a pool, in eager code and in captures. What the graph recorded are addresses all the same: it
is up to you that nothing else is placed where a replay writes.

Mechanism: held memory
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#graph-memory-management
"""

import threading

import torch

MIB = 2**20


def _ones():
    return torch.ones(4, device="cuda")


def _large():
    return torch.ones(4 * MIB, device="cuda")  # 16 MiB, which have a segment of their own.


def _reserved():
    return torch.cuda.memory_reserved() / MIB


def _pool(pool):
    """MiB of the segments in a pool."""
    return sum(segment["total_size"] for segment in pool.snapshot()) / MIB


def _overwrite_free_memory():
    """Give back what can be given back, then fill a good number of new blocks of any size with 99."""
    torch.cuda.empty_cache()
    return [torch.full((n,), 99.0, device="cuda") for n in (1, 4, 1000, 100_000) for _ in range(20)]


def _settle():
    """A graph to be kept: the first capture may reserve a segment for generators, which a case does not want to count."""
    x, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    return graph, x, y


def eager():
    """One and one is two: four twos."""
    yield "replay", _ones() + 1


def pool_id():
    """A graph that is captured into a pool of one's own, named by its id, shows two."""
    pool, x, graph = torch.cuda.MemPool(), _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        y = x + 1
    graph.replay()
    yield "replay", y


def pool_object():
    """A graph that is given the pool itself shows two.

    2.14 and later. Before, only an id would do, and the object was a TypeError.
    """
    pool, x, graph = torch.cuda.MemPool(), _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        y = x + 1
    graph.replay()
    yield "replay", y


def held_by_graph():
    """A graph shows two though the object of its pool is gone: the graph holds the pool as well."""
    pool, x, graph = torch.cuda.MemPool(), _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        y = x + 1
    del pool
    _others = _overwrite_free_memory()
    graph.replay()
    yield "replay", y


def output_outlives_graph():
    """A graph's output is still two when the graph is gone, its memory was given back and new tensors were made."""
    x, graph = _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    torch.cuda.synchronize()
    del graph
    _others = _overwrite_free_memory()
    yield "replay", y


def neighbour_deleted():
    """Of two graphs of one pool the second shows two when the first is gone."""
    x, first, second = _ones(), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        y = x + 5
    with torch.cuda.graph(second, pool=first.pool()):
        z = x + 1
    del y, first
    _others = _overwrite_free_memory()
    second.replay()
    yield "replay", z


def _pool_taken_up_again(holder):
    """Capture, delete the graph while its output lives, capture into the same pool; `holder` may hold the pool meanwhile."""
    x, first, second = _ones(), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=holder.id if holder else None):
        _y = x + 5
    pool = first.pool()
    del first
    with torch.cuda.graph(second, pool=pool):
        z = x + 1
    second.replay()
    yield "replay", z


def taken_up_again_bug():
    """A graph may be captured into the pool of a graph that was deleted: two.

    Seen instead: an error of the kind that asks for a bug report, since nobody holds the pool any more, and it is not gone
    either, for an output still lies in it.
    """
    yield from _pool_taken_up_again(holder=None)


def taken_up_again_fix():
    """With a `MemPool` object that holds the pool in between, the second graph shows two."""
    yield from _pool_taken_up_again(holder=torch.cuda.MemPool())


def used_twice_bug():
    """A graph is captured into a pool that the surrounding code uses already: two.

    Seen instead: an error. A pool is recorded to once at a time, by a capture, or by one thread's `use_mem_pool`.
    """
    pool, x, graph = torch.cuda.MemPool(), _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.use_mem_pool(pool), torch.cuda.graph(graph, pool=pool.id):
        y = x + 1
    graph.replay()
    yield "replay", y


def used_twice_fix():
    """Inside a capture there is no need to name the pool again: without `use_mem_pool` the graph shows two."""
    yield from pool_id()


def visitor_eager():
    """Four sevens that nobody writes to stay sevens."""
    yield "replay", torch.full((4,), 7.0, device="cuda")


def _visitor(pool_of_its_own):
    """An eager tensor of sevens, made on the graph's stream, in the graph's pool or in another; then a replay."""
    stream, pool, x, graph = torch.cuda.Stream(), torch.cuda.MemPool(), _ones(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id, stream=stream):
        _y = (x + 1) * 2
    other = torch.cuda.MemPool() if pool_of_its_own else pool
    with torch.cuda.stream(stream), torch.cuda.use_mem_pool(other):
        sevens = torch.full((4,), 7.0, device="cuda")
    torch.cuda.synchronize()
    graph.replay()
    torch.cuda.synchronize()
    yield "replay", sevens


def visitor_bug():
    """A tensor that is made in the pool of a graph stays what it is: sevens.

    Seen instead: twos. It was given the block of an intermediate result, and each replay writes that result there.
    """
    yield from _visitor(pool_of_its_own=False)


def visitor_fix():
    """A tensor that is made in another pool stays what it is: sevens."""
    yield from _visitor(pool_of_its_own=True)


def side_pool_eager():
    """Memory that a graph writes to at each replay is reserved: 16 MiB."""
    yield "replay", 16


def _side_pool(keep):
    """A capture whose intermediate result of 16 MiB lies in another pool; how much of it is left when that pool's object goes."""
    _kept, side, graph, x = _settle(), torch.cuda.MemPool(), torch.cuda.CUDAGraph(), _large()
    before = _reserved()
    with torch.cuda.graph(graph):
        with torch.cuda.use_mem_pool(side):
            scratch = x + 1
        x.copy_(scratch)
    del scratch
    if not keep:
        del side
    torch.cuda.empty_cache()
    yield "replay", _reserved() - before


def side_pool():
    """A pool that a capture has used under `use_mem_pool` stays for as long as the graph: 16 MiB.

    2.14 and later. Before, the graph did not know of the pool. It is given back with its object, 0 MiB are left, and the
    next replay writes to memory that is not torch's any more.
    """
    yield from _side_pool(keep=False)


def side_pool_fix():
    """The pool's object, kept as long as the graph, keeps the memory on all releases: 16 MiB."""
    yield from _side_pool(keep=True)


def thread_eager():
    """Two tensors of 16 MiB in a pool are 32 MiB."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        _x, _y = _large(), _large()
    yield "replay", _pool(pool)


def _in_a_thread(work):
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


def thread_bug():
    """A thread that is started under `use_mem_pool` allocates from the pool as well: 32 MiB.

    Seen instead: 16 MiB. The pool is used by the thread that entered it. The thread of autograd's backward is another, too.
    """
    pool, tensors = torch.cuda.MemPool(), []
    with torch.cuda.use_mem_pool(pool):
        tensors.append(_large())
        _in_a_thread(lambda: tensors.append(_large()))
    yield "replay", _pool(pool)


def thread_fix():
    """A thread that enters the pool itself, once the other has left it, allocates there: 32 MiB."""
    pool, tensors = torch.cuda.MemPool(), []

    def work():
        with torch.cuda.use_mem_pool(pool):
            tensors.append(_large())

    work()
    _in_a_thread(work)
    yield "replay", _pool(pool)


def deleted_graph_eager():
    """A tensor of 16 MiB takes the place of one that was dropped: 16 MiB reserved in all."""
    torch.cuda.empty_cache()
    x, before = _large(), _reserved()
    y = x + 1
    del y
    z = x + 2
    yield "replay", _reserved() - before
    del z


def _after_a_graph(clean_up):
    """What is reserved when a graph of 16 MiB is gone and an eager tensor of 16 MiB has come."""
    _kept, x = _settle(), _large()
    before, graph = _reserved(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    del y, graph
    clean_up()
    z = x + 2
    yield "replay", _reserved() - before
    del z


def deleted_graph_bug():
    """A tensor of 16 MiB takes the place of a graph's that was deleted: 16 MiB in all.

    Seen instead: 32 MiB. A pool that no graph holds any more is not for others to use; it waits to be given back.
    """
    yield from _after_a_graph(clean_up=lambda: None)


def deleted_graph_fix():
    """With the cache emptied after the graph was deleted, 16 MiB are reserved in all."""
    yield from _after_a_graph(clean_up=torch.cuda.empty_cache)


def empty_cache_eager():
    """With its one tensor dropped and the cache emptied, nothing is reserved any more: 0."""
    torch.cuda.empty_cache()
    x, before = _large(), _reserved()
    y = x + 1
    del y
    torch.cuda.empty_cache()
    yield "replay", _reserved() - before


def _emptied(reset):
    _kept, x = _settle(), _large()
    before, graph = _reserved(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    del y
    if reset:
        graph.reset()
    torch.cuda.empty_cache()
    yield "replay", _reserved() - before
    del graph


def empty_cache_bug():
    """With its output dropped and the cache emptied, a graph's memory is given back: 0.

    Seen instead: 16 MiB. The graph may be replayed at any time, and would write there.
    """
    yield from _emptied(reset=False)


def empty_cache_fix():
    """With the graph reset as well, its memory is given back: 0."""
    yield from _emptied(reset=True)
