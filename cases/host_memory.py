"""Host memory in a graph: what a replay reads again, what was read once, and what cannot be captured.

A captured copy from pinned memory reads the memory at each replay, as long as it is the tensor's own memory that is copied.
A number that lies on the host and goes into a kernel is another matter: its value is passed with the launch and frozen,
pinned or not. And much that one does with a pinned tensor gives a tensor that is not pinned, whose copy a capture refuses.
In the other direction a replay returns before its copies to the host are done.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

VALUES = [1.0, 2.0, 3.0]
MIB = 2**20


def eager():
    """Ten times each number, which is written on the host before each step: 10, 20, 30."""
    for value in VALUES:
        yield "replay", torch.full((2,), value, device="cuda") * 10


def _pinned(*size):
    return torch.zeros(*size, pin_memory=True)


def _follow(host, body):
    """Capture `body()`, then three times write a number on the host, replay, wait and yield the output."""
    host.fill_(VALUES[0])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = body()
    for value in VALUES:
        host.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        yield "replay", y


def upload_bug():
    """A number that is uploaded in the capture, from a pinned tensor made there, follows the host: 10, 20, 30.

    Seen instead: 10 three times. The pinned tensor was filled on the host, by code that runs at capture and never again.
    Releases before 2.10 refuse to pin memory in a capture; from 2.11 on torch asks for it in the relaxed mode, as for the GPU's.
    """
    host = torch.zeros(2)
    yield from _follow(host, lambda: host.pin_memory().to("cuda", non_blocking=True) * 10)


def upload_fix():
    """A number in a pinned tensor that was made before the capture follows the host: 10, 20, 30."""
    host = _pinned(2)
    yield from _follow(host, lambda: host.to("cuda", non_blocking=True) * 10)


def part():
    """A part of a pinned tensor that lies in one piece is pinned, and follows the host: 10, 20, 30."""
    host = _pinned(6)
    yield from _follow(host, lambda: host[2:4].to("cuda", non_blocking=True) * 10)


def strided_bug():
    """Every other element of a pinned tensor follows the host: 10, 20, 30.

    Seen instead: an error at capture. Elements that do not lie in one piece are gathered on the host first, in memory that
    is not pinned.
    """
    host = _pinned(4)
    yield from _follow(host, lambda: host[::2].to("cuda", non_blocking=True) * 10)


def strided_fix():
    """The whole, copied in one piece and cut on the GPU, follows the host: 10, 20, 30."""
    host = _pinned(4)
    yield from _follow(host, lambda: host.to("cuda", non_blocking=True)[::2] * 10)


def derived_bug():
    """Ten times a pinned tensor, computed on the host and uploaded, follows the host: 10, 20, 30.

    Seen instead: an error at capture, for the product is not pinned. Were it, it would be the product of the capture.
    """
    host = _pinned(2)
    yield from _follow(host, lambda: (host * 10).to("cuda", non_blocking=True))


def converted_bug():
    """A pinned tensor that is converted on the host and uploaded follows the host: 10, 20, 30.

    Seen instead: an error at capture, for a converted tensor is a new one, and not pinned.
    """
    host = _pinned(2)
    yield from _follow(host, lambda: host.double().to("cuda", non_blocking=True) * 10)


def converted_fix():
    """A conversion that is part of the upload is made on the GPU, and follows the host: 10, 20, 30.

    Only with `non_blocking=True`; otherwise torch converts on the host.
    """
    host = _pinned(2)
    yield from _follow(host, lambda: host.to("cuda", torch.float64, non_blocking=True) * 10)


def scalar_bug():
    """A factor in a CPU tensor without dimensions, which CUDA operators accept, follows the host: 10, 20, 30.

    Seen instead: 10 three times. Its value was passed to the kernel as a number.
    """
    factor, tens = torch.zeros(()), torch.full((2,), 10.0, device="cuda")
    yield from _follow(factor, lambda: tens * factor)


def scalar_bug_pinned():
    """A factor in a pinned tensor without dimensions is read at each replay: 10, 20, 30.

    Seen instead: 10 three times. No copy was recorded that could read it again; pinned or not, the value was passed.
    """
    factor, tens = _pinned(()), torch.full((2,), 10.0, device="cuda")
    yield from _follow(factor, lambda: tens * factor)


def scalar_fix():
    """A factor that lies on the GPU and is filled there is read at each replay: 10, 20, 30."""
    factor, tens = torch.zeros((), device="cuda"), torch.full((2,), 10.0, device="cuda")
    yield from _follow(factor, lambda: tens * factor)


def two_uploads_eager():
    """1 in one tensor and 2 in another, three times."""
    for _ in range(3):
        yield "replay", [1.0, 2.0]


def two_uploads():
    """Two uploads from pinned tensors that are let go one after the other, in a capture, do not mix: 1 and 2.

    A pinned block that a capture has read from is not given out again in that capture.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first = torch.full((1,), 1.0).pin_memory().to("cuda", non_blocking=True)
        second = torch.full((1,), 2.0).pin_memory().to("cuda", non_blocking=True)
    for _ in range(3):
        graph.replay()
        yield "replay", [first.item(), second.item()]


def download_eager():
    """The squares of 1, 2, 3 as the host reads them: 1, 4, 9."""
    for value in VALUES:
        yield "replay", torch.full((1,), value, device="cuda").square().cpu()


def _download(wait, cycles):
    """Replays that spin for a while and then copy a square to the host, which reads it after `wait()`."""
    x, host, graph = torch.zeros(1, device="cuda"), _pinned(1), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(cycles)
        host.copy_(x.square(), non_blocking=True)
    graph.replay()  # A first launch may wait.
    torch.cuda.synchronize()
    seen = []
    for value in VALUES:
        x.fill_(value)
        graph.replay()
        wait()
        seen.append(host.clone())
    torch.cuda.synchronize()
    for value in seen:
        yield "replay", value


def download_bug(cycles=100_000_000):
    """A square that the graph copies to the host is there when `replay()` returns: 1, 4, 9.

    Seen instead: 0 three times, what the buffer held before. `replay()` only queues the graph.
    """
    yield from _download(wait=lambda: None, cycles=cycles)


def download_fix(cycles=100_000_000):
    """After a wait for the device the host reads 1, 4, 9."""
    yield from _download(wait=torch.cuda.synchronize, cycles=cycles)


def rounding_eager():
    """Four buffers of 5 MiB are 20 MiB."""
    yield "replay", 4 * 5


def _pinned_mib(*sizes):
    """MiB of pinned memory that buffers of these sizes, in MiB, take."""
    before = torch.cuda.host_memory_stats().get("allocated_bytes.current", 0)
    _buffers = [torch.empty(size * MIB, dtype=torch.uint8, pin_memory=True) for size in sizes]
    yield "replay", (torch.cuda.host_memory_stats()["allocated_bytes.current"] - before) / MIB


def rounding_bug():
    """Four pinned buffers of 5 MiB take 20 MiB of the host's memory.

    Seen instead: 32 MiB. Pinned memory is handed out in powers of two.
    """
    torch.cuda.init()
    yield from _pinned_mib(5, 5, 5, 5)


def rounding_fix():
    """A buffer of 16 MiB and one of 4, cut into parts as needed, take 20 MiB."""
    torch.cuda.init()
    yield from _pinned_mib(16, 4)
