"""What cuBLAS needs beside the matrices: a handle, which cannot be made in a capture, and memory, which a graph freezes.

A matmul runs through a handle of its thread and works in a scratch buffer, the workspace. The handle is made at a thread's
first matmul, and making it is forbidden while a stream is captured. The workspace comes from torch's allocator; a kernel
that was recorded keeps its address. Up to 2.14 there is one for each handle and stream, made at the first matmul there and
kept: in a capture it lies in that graph's pool, and later graphs of the stream use it too, pools of their own or not. From
2.15 on each matmul takes a workspace and gives it back at once. The cases fix its size at 32 MiB, as on a Hopper GPU.

Mechanism: held memory
Source: https://github.com/pytorch/pytorch/issues/193402
"""

import concurrent.futures
import os

import torch

MIB = 2**20


def _matrices():
    return torch.ones(2, 2, device="cuda"), torch.full((2, 2), 2.0, device="cuda")


def _captured(stream=None, pool=None):
    """A graph of one small matmul, its inputs and its output."""
    a, b = _matrices()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, pool=pool):
        c = a @ b
    return graph, (a, b), c


def _warm(kib=4096):
    """A first matmul on the default stream, with a workspace of eight times `kib`; nothing is left in the cache."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = f":{kib}:8"
    a, b = _matrices()
    a @ b
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def _segments(graph):
    return torch.cuda.memory_snapshot(graph.pool())


def _pool(graph):
    """MiB of the segments in the graph's pool."""
    return sum(segment["total_size"] for segment in _segments(graph)) / MIB


def _in_use(graph):
    """Whole MiB of the graph's pool that somebody holds."""
    return sum(segment["allocated_size"] for segment in _segments(graph)) // MIB


def eager():
    """Ones times twos, two by two, is fours."""
    a, b = _matrices()
    yield "replay", a @ b


def _replayed(graph, _inputs, c):
    graph.replay()
    yield "replay", c


def cold_bug():
    """A matmul is captured like any other operator: fours.

    Seen instead: an error that cuBLAS is not initialized. It is the first of the process, so its handle is made within the
    capture, which is not permitted.
    """
    yield from _replayed(*_captured())


def cold_fix():
    """After one matmul in eager mode, on whatever stream, it is captured: fours."""
    _warm()
    yield from _replayed(*_captured())


def cold_fix_handle():
    """Asking for the handle makes it as well, without any matmul: fours."""
    torch.cuda.current_blas_handle()
    yield from _replayed(*_captured())


def thread_bug():
    """A thread captures a matmul after the main thread has run one: fours.

    Seen instead: the same error. Each thread has a handle of its own, and this one's is not made yet.
    """
    _warm()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        captured = executor.submit(_captured).result()
    yield from _replayed(*captured)


def thread_fix():
    """A thread captures a matmul after it has run one itself: fours."""
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        executor.submit(_warm).result()
        captured = executor.submit(_captured).result()
    yield from _replayed(*captured)


def backward_eager():
    """The gradient of the sum of a @ b by a is the sum of each row of b: fours."""
    a, b = _matrices()
    a.requires_grad_()
    yield "replay", torch.autograd.grad((a @ b).sum(), a)[0]


def _captured_backward(warm_backward):
    _warm()
    a, b = _matrices()
    a.requires_grad_()
    if warm_backward:
        torch.autograd.grad((a @ b).sum(), a)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (gradient,) = torch.autograd.grad((a @ b).sum(), a)
    yield from _replayed(graph, (a, b), gradient)


def backward_bug():
    """Forward and backward are captured after a matmul in forward mode: fours.

    Seen instead: the same error, from backward. Autograd has a thread of its own for the GPU, and so a handle of its own.
    """
    yield from _captured_backward(warm_backward=False)


def backward_fix():
    """Forward and backward are captured after a forward and a backward: fours."""
    yield from _captured_backward(warm_backward=True)


def size_eager():
    """The result of a matmul, two by two, takes the smallest segment: 2 MiB."""
    yield "replay", 2


def size_bug():
    """A graph of one matmul, two by two, holds a segment for its result: 2 MiB.

    Seen instead: 34 MiB. The workspace, 32 MiB on this GPU, lies in the pool as well.
    """
    _warm()
    graph, _inputs, _c = _captured()
    yield "replay", _pool(graph)


def size_fix():
    """With CUBLAS_WORKSPACE_CONFIG=:16:8, which asks for 128 KiB, the graph holds 2 MiB."""
    _warm(kib=16)
    graph, _inputs, _c = _captured()
    yield "replay", _pool(graph)


def size_warm_stream():
    """A graph that is captured on the stream of the warm-up holds 2 MiB, for the stream has its workspace already.

    Up to 2.14. From 2.15 on no workspace waits for a stream: the captured matmul takes its own, and the pool holds 34 MiB.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        _warm()
    graph, _inputs, _c = _captured(stream=stream)
    yield "replay", _pool(graph)


def neighbour_eager():
    """A graph that goes takes nothing from another: 0 MiB."""
    yield "replay", 0


def _neighbour(streams):
    """How many MiB in use the first graph's pool loses when a second graph, with a pool of its own, is deleted."""
    _warm()
    first, _inputs, _c = _captured(stream=streams[0])
    second = _captured(stream=streams[1])
    before = _in_use(first)
    del second
    yield "replay", before - _in_use(first)


def neighbour_bug():
    """Deleting a graph takes nothing from another, which has a pool of its own: 0 MiB.

    Seen instead: 32 MiB in 2.12 to 2.14. Deleting a graph drops the workspaces of the stream on which it was captured, and
    unless one says otherwise all graphs are captured on the same. The first graph goes on writing to a buffer that may be
    given to others.
    """
    yield from _neighbour(streams=(None, None))


def neighbour_fix():
    """Captured on streams of their own, graphs have workspaces of their own, and lose none: 0 MiB."""
    yield from _neighbour(streams=(torch.cuda.Stream(), torch.cuda.Stream()))


def _deleted(clear):
    """What is reserved more when a graph of a matmul has come and gone; another graph has come before, and stays."""
    _warm()
    torch._C._cuda_clearCublasWorkspaces()  # That of the warm-up, so as to count the graph's alone.
    torch.cuda.empty_cache()
    x, kept = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(kept):
        _y = x + 1
    before = torch.cuda.memory_reserved()
    captured = _captured()
    del captured
    if clear:
        torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    yield "replay", (torch.cuda.memory_reserved() - before) / MIB


def deleted_eager():
    """Of a graph that was deleted nothing is left: 0 MiB."""
    yield "replay", 0


def deleted_bug():
    """When a graph of a matmul is deleted and the cache emptied, its memory is given back: 0 MiB are left.

    Seen instead: 32 MiB up to 2.11. The workspace lies in the graph's pool and is kept for the stream's next matmul.
    """
    yield from _deleted(clear=False)


def deleted_fix():
    """With the workspaces cleared as well, 0 MiB are left."""
    yield from _deleted(clear=True)


def many_eager():
    """Four results and one workspace take 2 and 32 MiB."""
    yield "replay", 34


def many_bug():
    """Four graphs of a small matmul need one workspace, since they run one after the other: 34 MiB in all.

    Seen instead: 136 MiB, where each has a stream and a pool of its own.
    """
    _warm()
    captured = [_captured(stream=torch.cuda.Stream()) for _ in range(4)]
    yield "replay", sum(_pool(graph) for graph, _, _ in captured)


def many_fix():
    """Four graphs of one stream and one pool hold 34 MiB in all."""
    _warm()
    pool = torch.cuda.graph_pool_handle()
    captured = [_captured(pool=pool) for _ in range(4)]
    yield "replay", _pool(captured[0][0])
