"""A captured copy from host memory reads that memory again at each replay.

`torch.tensor(i).to("cuda")` within a capture records a copy from the address of a tensor that is gone when the line ends.
From ordinary (pageable) memory recent releases refuse to record such a copy. From pinned memory they record it, and the
pinned block must live as long as the graph. The number i is a Python number, so it stays what it was at capture whatever is
done about the memory: 3 is what a right graph shows at every replay.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

STEPS = range(6)
CAPTURE_AT = 3


def eager():
    """Each number arrives on the GPU: 0, 1, 2, then the frozen 3 three times."""
    for i in STEPS:
        yield "replay", torch.tensor(min(i, CAPTURE_AT)).to("cuda")


def _eager_then_graph(upload, before_replay=lambda i: None):
    """Three eager calls of `upload(i)`, its capture with a first replay, then replays."""
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        if i < CAPTURE_AT:
            yield "warmup", upload(i)
        elif i == CAPTURE_AT:
            with torch.cuda.graph(graph):
                y = upload(i)
            graph.replay()
            yield "capture", y
        else:
            before_replay(i)
            graph.replay()
            yield "replay", y


def bug():
    """A number copied from the host within a capture arrives at each replay: 3.

    Seen instead: an error at capture, for the copy is from pageable memory. Releases that recorded it read freed memory at
    replay, and showed numbers such as 94457301632419.
    """
    yield from _eager_then_graph(lambda i: torch.tensor(i).to("cuda", non_blocking=True))


def fix_keep_alive():
    """A host tensor that is kept alive is read at each replay: 3.

    Seen instead: the same error at capture, since kept or not the memory is pageable.
    """
    kept = []

    def upload(i):
        kept.append(torch.tensor(i))
        return kept[-1].to("cuda", non_blocking=True)

    yield from _eager_then_graph(upload)


def fix_gpu_tensor():
    """A tensor made on the GPU within the capture is made again at each replay: 3.

    Seen instead: the same error at capture. `torch.tensor(i, device="cuda")` makes the tensor on the host and copies it.
    """
    yield from _eager_then_graph(lambda i: torch.tensor(i, device="cuda"))


def _pinned(keep_alive):
    """Capture a copy from a pinned tensor, let go of it or not, and before each replay make another pinned tensor."""
    host = [torch.tensor(i).pin_memory() for i in range(CAPTURE_AT + 1)]
    captured = host[CAPTURE_AT].data_ptr()
    others = []

    def another(i):
        if not keep_alive:
            del host[CAPTURE_AT:]
        others.append(torch.tensor(100 + i).pin_memory())

    for step, value in _eager_then_graph(lambda i: host[i].to("cuda", non_blocking=True), before_replay=another):
        if others:
            yield "address", {"read by the graph": captured, "new pinned tensor": others[-1].data_ptr()}
        yield step, value


def bug_pinned():
    """A number copied from pinned memory that was let go after the capture still arrives: 3.

    Seen instead: 104 from the first replay after that on, the number of the next pinned tensor, which was given the block.
    torch withholds only pinned blocks that were allocated within the capture.
    """
    yield from _pinned(keep_alive=False)


def fix_pinned_keep_alive():
    """A number copied from pinned memory that is kept arrives at each replay: 3."""
    yield from _pinned(keep_alive=True)


def fix_full():
    """A number that a kernel writes needs no host memory, and arrives at each replay: 3.

    `torch.full` passes the number by value. It is frozen, as a Python number always is.
    """
    yield from _eager_then_graph(lambda i: torch.full((), i, device="cuda"))
