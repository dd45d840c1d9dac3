"""What a capture refuses, with which error, and what to write instead.

A capture records work and runs none of it, so nothing that needs a result can be had: no wait, no query, no value on the
host, no shape that depends on data. CUDA answers such a call with error 900 and the capture is lost; when it ends, error 901
("a previous error during capture") hides the first one, which is left as the cause of the second. A copy between the GPU and
pageable memory torch refuses by itself, with a plain RuntimeError, and that capture lives. The function that is captured
here multiplies a tensor by its own sum; only how it comes by the sum differs.

Mechanism: refused call
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/capture-failures.html
"""

import torch

NUMBERS = [1, 2, 3]


def _ones():
    return torch.ones(4, device="cuda")


def _replays(body, mode="global"):
    """Run `body` once in eager mode, capture it, and replay it for each number."""
    x = _ones()
    body(x)  # A first launch loads a kernel; that is not what is tried here.
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = body(x)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        yield "replay", y


def eager():
    """Four times 1, 2, 3 by their sums 4, 8, 12: 4, 16, 36."""
    for number in NUMBERS:
        x = _ones().fill_(number)
        yield "replay", x * x.sum()


def item_bug():
    """A sum taken with item() scales the tensor: 4, 16, 36.

    Seen instead: an error. `item()` waits for the stream, and a captured stream has nothing to wait for.
    """
    yield from _replays(lambda x: x * x.sum().item())


def item_fix():
    """A sum that stays a tensor on the GPU scales the tensor: 4, 16, 36."""
    yield from _replays(lambda x: x * x.sum())


def relaxed_bug():
    """In the mode "relaxed" a sum may be taken with item(): 4, 16, 36.

    Seen instead: the same error. The mode lifts the ban on calls that might be unsafe, such as an allocation; a wait for the
    captured stream itself is none of those.
    """
    yield from _replays(lambda x: x * x.sum().item(), mode="relaxed")


def tolist_bug():
    """A sum of the elements of tolist() scales the tensor: 4, 16, 36.

    Seen instead: another error than item() gives. `tolist()` copies the tensor to pageable memory, and torch refuses that
    before CUDA is asked.
    """
    yield from _replays(lambda x: x * sum(x.tolist()))


def cpu_bug():
    """A sum computed on the CPU scales the tensor: 4, 16, 36.

    Seen instead: an error, for `cpu()` is a copy to pageable memory.
    """
    yield from _replays(lambda x: x * x.cpu().sum().item())


def cpu_fix_pinned():
    """A sum copied to pinned memory without waiting can be read on the CPU after the replay: 4, 16, 36."""
    x, total = _ones(), torch.zeros((), pin_memory=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total.copy_(x.sum(), non_blocking=True)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        torch.cuda.synchronize()  # The copy is queued work: without a wait the CPU reads too early.
        yield "replay", x * total.item()


def branch_bug():
    """A tensor is multiplied where its sum is positive: 4, 16, 36.

    Seen instead: an error. The `if` asks the GPU for the sum, as `item()` would.
    """
    yield from _replays(lambda x: x * x.sum() if x.sum() > 0 else x)


def branch_fix():
    """torch.where chooses on the GPU: 4, 16, 36. Both sides are computed."""
    yield from _replays(lambda x: torch.where(x.sum() > 0, x * x.sum(), x))


def mask_bug():
    """The positive elements, picked by a mask, are scaled: 4, 16, 36.

    Seen instead: an error. How many elements a mask picks is counted on the GPU, and the CPU must know it to allocate.
    """
    yield from _replays(lambda x: x[x > 0] * x.sum())


def mask_fix():
    """A mask given to torch.where keeps the shape, so that nothing is counted: 4, 16, 36."""
    yield from _replays(lambda x: torch.where(x > 0, x * x.sum(), torch.zeros_like(x)))


def number_bug():
    """torch.where takes a number that is a tensor on the CPU for its other side: 4, 16, 36.

    Seen instead: an error. Most operators read such a number when they are launched and pass it to their kernel by value;
    this one copies it to the GPU first.
    """
    zero = torch.tensor(0.0)
    yield from _replays(lambda x: torch.where(x > 0, x * x.sum(), zero))


def number_fix():
    """torch.where takes a Python number for its other side, of which it makes a tensor on the GPU with a fill: 4, 16, 36."""
    yield from _replays(lambda x: torch.where(x > 0, x * x.sum(), 0.0))


def index_bug():
    """The elements at 3, 2, 1, 0, picked by a Python list, are scaled: 4, 16, 36.

    Seen instead: an error. The list becomes a tensor in pageable memory, which must be copied to the GPU first.
    """
    yield from _replays(lambda x: x[[3, 2, 1, 0]] * x.sum())


def index_fix():
    """An index that lies on the GPU before the capture needs no copy: 4, 16, 36."""
    index = torch.tensor([3, 2, 1, 0], device="cuda")
    yield from _replays(lambda x: x[index] * x.sum())


def _scaled_after(wait):
    def body(x):
        y = x * x.sum()
        wait()
        return y

    return body


def synchronize_bug():
    """A synchronize() left in the code, for a timer say, does no harm: 4, 16, 36.

    Seen instead: an error. The device cannot be waited for while one of its streams is captured.
    """
    yield from _replays(_scaled_after(torch.cuda.synchronize))


def query_bug():
    """Asking whether the stream is done does no harm: 4, 16, 36.

    Seen instead: an error. It is no more allowed than waiting is.
    """
    yield from _replays(_scaled_after(lambda: torch.cuda.current_stream().query()))


def query_fix():
    """A query that is left out while a capture is on does no harm: 4, 16, 36."""
    yield from _replays(_scaled_after(lambda: torch.cuda.is_current_stream_capturing() or torch.cuda.current_stream().query()))


def nested_bug():
    """A function that captures a graph for its own use can be captured itself: 4, 16, 36.

    Seen instead: an error. `torch.cuda.graph` begins with a wait for the device, which the outer capture does not allow.
    """

    def body(x):
        if torch.cuda.is_current_stream_capturing():
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                x * 2
        return x * x.sum()

    yield from _replays(body)


def _capture_by_hand(graph, x, stream):
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        y = x * x.sum()
        graph.capture_end()
    return y


def _replays_of(graph, x, y):
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        yield "replay", y


def default_stream_bug():
    """The default stream can be captured like any other: 4, 16, 36.

    Seen instead: an error of torch's own. `torch.cuda.graph` takes a stream of its own for this reason.
    """
    graph, x = torch.cuda.CUDAGraph(), _ones()
    y = _capture_by_hand(graph, x, torch.cuda.default_stream())
    yield from _replays_of(graph, x, y)


def default_stream_fix():
    """A capture by hand works on a side stream: 4, 16, 36."""
    graph, x = torch.cuda.CUDAGraph(), _ones()
    y = _capture_by_hand(graph, x, torch.cuda.Stream())
    yield from _replays_of(graph, x, y)


def other_stream_bug():
    """A capture can be ended from whichever stream is current: 4, 16, 36.

    Seen instead: an error of torch's own, and the first stream is still captured.
    """
    graph, x = torch.cuda.CUDAGraph(), _ones()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        y = x * x.sum()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_end()
    yield from _replays_of(graph, x, y)


def twice_bug():
    """A second capture into the same CUDAGraph replaces the first: 4, 16, 36.

    Seen instead: an error. A captured graph is reset first, or left alone and another one is made.
    """
    graph, x, stream = torch.cuda.CUDAGraph(), _ones(), torch.cuda.Stream()
    y = _capture_by_hand(graph, x, stream)
    y = _capture_by_hand(graph, x, stream)
    yield from _replays_of(graph, x, y)


def twice_fix():
    """After reset() the same CUDAGraph can be captured again: 4, 16, 36."""
    graph, x, stream = torch.cuda.CUDAGraph(), _ones(), torch.cuda.Stream()
    y = _capture_by_hand(graph, x, stream)
    graph.reset()
    y = _capture_by_hand(graph, x, stream)
    yield from _replays_of(graph, x, y)


def early_replay_bug():
    """A replay before the capture does nothing, and later ones give 4, 16, 36.

    Seen instead: an error, whose text changed with 2.14: up to 2.13 it speaks of a replay, from then on of instantiate(),
    which replay() calls now if nobody has (https://github.com/pytorch/pytorch/pull/187740).
    """
    graph, x = torch.cuda.CUDAGraph(), _ones()
    graph.replay()
    y = _capture_by_hand(graph, x, torch.cuda.Stream())
    yield from _replays_of(graph, x, y)
