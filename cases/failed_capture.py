"""What a capture that failed leaves behind.

Code that tries to capture and falls back to eager mode goes on in a process in which a capture has failed. There are two ways
to fail. A Python exception, and a copy that torch refuses, leave the capture alive: it ends as the `with` block is left, and
the graph holds what was recorded until then. A call that CUDA forbids loses the capture: its end raises as well, and what torch
does at the end of a capture is then left undone, each release less of it. Nothing of either kind was run. Here a capture is
lost on purpose, by a wait for its own stream, and the error is put aside.

Mechanism: refused call
Source: https://github.com/pytorch/pytorch/pull/190308
"""

import contextlib

import torch

STEPS = range(3)


def _counter():
    return torch.zeros(1, device="cuda", dtype=torch.int64)


def _step(counter):
    counter.add_(1)
    counter.mul_(10)


def _lose(graph, work=lambda: None, pool=None):
    """Begin a capture and lose it. The outer block gives the caller's stream back, which `torch.cuda.graph` does from 2.15 on."""
    with torch.cuda.stream(torch.cuda.current_stream()), contextlib.suppress(RuntimeError), torch.cuda.graph(graph, pool=pool):
        work()
        torch.cuda.current_stream().synchronize()


def eager():
    """A counter that each step adds 1 to and multiplies by 10: 10, 110, 1110."""
    counter = _counter()
    for _ in STEPS:
        _step(counter)
        yield "replay", counter


def _replays(graph, counter):
    for _ in STEPS:
        graph.replay()
        yield "replay", counter


def partial_bug():
    """A graph whose capture was broken off by a Python exception does nothing or all of a step: 10, 110, 1110.

    Seen instead: 1, 2, 3. The capture ended well, with the first of the two operators in it, and the graph replays that.
    """
    counter, graph = _counter(), torch.cuda.CUDAGraph()
    with contextlib.suppress(ValueError), torch.cuda.graph(graph):
        counter.add_(1)
        raise ValueError("something that has nothing to do with CUDA")
    yield from _replays(graph, counter)


def partial_fix():
    """A graph that is used only if its capture was left without an exception, and eager mode otherwise: 10, 110, 1110."""
    counter, graph, captured = _counter(), torch.cuda.CUDAGraph(), False
    with contextlib.suppress(ValueError):
        with torch.cuda.graph(graph):
            counter.add_(1)
            raise ValueError("something that has nothing to do with CUDA")
        captured = True
    for _ in STEPS:
        graph.replay() if captured else _step(counter)
        yield "replay", counter


def replay_bug():
    """A graph whose capture was lost can be replayed none the less: 10, 110, 1110.

    Seen instead: an error, whose text is another one from 2.14 on, as after no capture at all.
    """
    counter, graph = _counter(), torch.cuda.CUDAGraph()
    _lose(graph, lambda: _step(counter))
    yield from _replays(graph, counter)


def _retry(pool, another_pool):
    """Lose a capture, then make a good one, and replay that."""
    counter = _counter()
    _lose(torch.cuda.CUDAGraph(), lambda: _step(counter), pool)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=another_pool):
        _step(counter)
    yield from _replays(graph, counter)


def retry_fix():
    """After a lost capture another CUDAGraph can be captured: 10, 110, 1110."""
    yield from _retry(None, None)


def shared_pool_bug():
    """After a lost capture another one can use the same memory pool: 10, 110, 1110.

    Seen instead: up to 2.12, an error. The allocator was never told that the first capture had ended, and takes no second into
    the pool (https://github.com/pytorch/pytorch/pull/180395).
    """
    pool = torch.cuda.graph_pool_handle()
    yield from _retry(pool, pool)


def shared_pool_fix():
    """After a lost capture a capture into another pool gives 10, 110, 1110 on every release."""
    yield from _retry(torch.cuda.graph_pool_handle(), torch.cuda.graph_pool_handle())


def caught_bug():
    """An error that is caught within the capture does no harm: 10, 110, 1110.

    Seen instead: an error at the end of the block, which speaks of "a previous error during capture" and cannot say of which.
    """
    counter, graph = _counter(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _step(counter)
        with contextlib.suppress(RuntimeError):
            torch.cuda.current_stream().synchronize()
    yield from _replays(graph, counter)


def caught_copy():
    """A copy from pageable memory that was refused, and the error caught, does no harm: 10, 110, 1110.

    torch refuses it without asking CUDA, so the capture never hears of it.
    """
    counter, graph = _counter(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with contextlib.suppress(RuntimeError):
            counter.copy_(torch.zeros(1, dtype=torch.int64))
        _step(counter)
    yield from _replays(graph, counter)


def earlier_graph():
    """A graph that was captured before another capture was lost replays as ever: 10, 110, 1110."""
    counter, graph = _counter(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _step(counter)
    _lose(torch.cuda.CUDAGraph())
    yield from _replays(graph, counter)


def stream_eager():
    """The stream is the one that was current before: True."""
    yield "capture", torch.cuda.current_stream() == torch.cuda.default_stream()


def stream_bug():
    """A lost capture leaves the current stream as it was: True.

    Seen instead: up to 2.14, False. `torch.cuda.graph` ends the capture first and sets the stream back afterwards, so that an
    error keeps it from doing so, and eager work goes on in the capture's stream, unordered with the rest of the program.
    """
    with contextlib.suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.cuda.current_stream().synchronize()
    yield "capture", torch.cuda.current_stream() == torch.cuda.default_stream()


def stream_fix():
    """A block of one's own around the capture sets the stream back on every release: True."""
    with torch.cuda.stream(torch.cuda.current_stream()), contextlib.suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.cuda.current_stream().synchronize()
    yield "capture", torch.cuda.current_stream() == torch.cuda.default_stream()


def unwritten_eager():
    """The buffer holds the sum: 2."""
    buffer = torch.full((1,), 5, device="cuda")
    yield "capture", buffer.copy_(torch.ones_like(buffer) + 1)


def unwritten_bug():
    """A step that failed in its capture has been done once: 2.

    Seen instead: 5, what the buffer held. Capturing runs nothing, and neither does failing.
    """
    x, buffer = torch.ones(1, device="cuda", dtype=torch.int64), torch.full((1,), 5, device="cuda")
    _lose(torch.cuda.CUDAGraph(), lambda: buffer.copy_(x + 1))
    yield "capture", buffer


def unwritten_fix():
    """The step done over in eager mode after the failure gives 2."""
    x, buffer = torch.ones(1, device="cuda", dtype=torch.int64), torch.full((1,), 5, device="cuda")
    _lose(torch.cuda.CUDAGraph(), lambda: buffer.copy_(x + 1))
    buffer.copy_(x + 1)
    yield "capture", buffer


def _bytes_kept(pool):
    """Bytes of the pool's segments, once the cache has been emptied."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return sum(segment["total_size"] for segment in torch.cuda.memory_snapshot() if tuple(segment["segment_pool_id"]) == tuple(pool))


def memory_eager():
    """Nothing is kept: 0 bytes."""
    yield "capture", _bytes_kept(torch.cuda.graph_pool_handle())


def memory_bug():
    """When the graph of a lost capture is gone, so is its memory: 0 bytes.

    Seen instead: up to 2.13, 67108864, all that the capture had allocated, until the process ends
    (https://github.com/pytorch/pytorch/pull/190348).
    """
    pool = torch.cuda.graph_pool_handle()
    _lose(torch.cuda.CUDAGraph(), lambda: torch.empty(64 * 2**20, device="cuda", dtype=torch.uint8), pool)
    yield "capture", _bytes_kept(pool)


def memory_control():
    """When the graph of a good capture is gone, so is its memory, on every release: 0 bytes."""
    pool, graph = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        torch.empty(64 * 2**20, device="cuda", dtype=torch.uint8).fill_(1)
    del graph
    yield "capture", _bytes_kept(pool)


def random_eager():
    """Ten random numbers lie between 0 and 1: True."""
    numbers = torch.rand(10, device="cuda")
    yield "replay", bool(((numbers >= 0) & (numbers < 1)).all())


def random_bug():
    """After a lost capture random numbers can be drawn in eager mode: True.

    Seen instead: up to 2.11, an error at every draw. The generator was told that a capture had begun, and never that it had
    ended. From 2.12 on it keeps that apart for each capture (https://github.com/pytorch/pytorch/pull/176752).
    """
    _lose(torch.cuda.CUDAGraph())
    yield from random_eager()


def random_workaround():
    """After a lost capture and then a good one, of anything, random numbers can be drawn on every release: True."""
    _lose(torch.cuda.CUDAGraph())
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        _step(_counter())
    yield from random_eager()
