"""The CPU rewrites a pinned buffer that a queued copy has yet to read.

`replay()` queues work and returns. A copy from pinned memory reads the buffer when the copy's turn comes, not when it was
asked for. A loop that fills the buffer and replays is thus through before the first copy has started, and all copies read
the last value. It is no fault of graphs: eager work on a stream does the same. What is needed is an order between the
GPU's read and the CPU's next write. Reading a result would be such an order, so results are collected and shown at the end.

Mechanism: async replay
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

VALUES = [0, 1, 2, 3]
BUSY_MS = 50


def _cycles_per_ms():
    """GPU clock cycles in a millisecond, from the second of two spins; the first pays for the kernel's loading."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(2):
        start.record()
        torch.cuda._sleep(1_000_000)
        end.record()
        end.synchronize()
    return 1_000_000 / start.elapsed_time(end)


def _slow_square(x, cycles):
    """The square of a host tensor, which the GPU comes to read only when it has spun for a while."""
    torch.cuda._sleep(cycles)
    return x.to(device="cuda", non_blocking=True) ** 2


def _pinned_buffer():
    return torch.zeros(1, pin_memory=True)


def _capture():
    x, cycles = _pinned_buffer(), int(BUSY_MS * _cycles_per_ms())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _slow_square(x, cycles)
    return graph, x, y


def eager():
    """Squares of 0, 1, 2, 3, each read before the next is written: 0, 1, 4, 9."""
    x = _pinned_buffer()
    for value in VALUES:
        x.fill_(value)
        yield "replay", _slow_square(x, cycles=1000)


def bug_eager():
    """Squares queued on a side stream are those of the numbers at the time of the call: 0, 1, 4, 9.

    Seen instead: 0, 9, 9, 9. The CPU had written 3 before the GPU came to read. Only the first came through, for a process's
    first launch of a kernel loads it, which waits for the GPU.
    """
    x, cycles = _pinned_buffer(), int(BUSY_MS * _cycles_per_ms())
    outputs = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for value in VALUES:
            x.fill_(value)
            outputs.append(_slow_square(x, cycles))
    torch.cuda.synchronize()
    for output in outputs:
        yield "replay", output


def bug_graph():
    """Replays give the squares of the numbers at the time of the replay: 0, 1, 4, 9.

    Seen instead: 9 four times. All four numbers were written while the GPU was in the first replay.
    """
    graph, x, y = _capture()
    outputs = []
    for value in VALUES:
        x.fill_(value)
        graph.replay()
        outputs.append(y.clone())
    torch.cuda.synchronize()
    for output in outputs:
        yield "replay", output


def fix_synchronize():
    """A wait for the whole device before each write gives 0, 1, 4, 9."""
    graph, x, y = _capture()
    outputs = []
    for value in VALUES:
        torch.cuda.synchronize()
        x.fill_(value)
        graph.replay()
        outputs.append(y.clone())
    torch.cuda.synchronize()
    for output in outputs:
        yield "replay", output


def fix_event():
    """A wait for the last replay alone, by an event, gives 0, 1, 4, 9.

    An event that was never recorded is waited for at once, so the first turn needs no exception.
    """
    graph, x, y = _capture()
    event, outputs = torch.cuda.Event(), []
    for value in VALUES:
        event.synchronize()
        x.fill_(value)
        graph.replay()
        outputs.append(y.clone())
        event.record()
    torch.cuda.synchronize()
    for output in outputs:
        yield "replay", output


def fix_cuda_input():
    """A graph that reads a tensor on the GPU, filled by an ordinary copy, gives 0, 1, 4, 9.

    The copy waits in the stream's queue behind the last replay, and the CPU waits for the copy. With `non_blocking=True` it
    would not, and the bug were back.
    """
    x, x_cuda = _pinned_buffer(), torch.zeros(1, device="cuda")
    cycles = int(BUSY_MS * _cycles_per_ms())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(cycles)
        y = x_cuda**2
    outputs = []
    for value in VALUES:
        x.fill_(value)
        x_cuda.copy_(x)
        graph.replay()
        outputs.append(y.clone())
    torch.cuda.synchronize()
    for output in outputs:
        yield "replay", output
