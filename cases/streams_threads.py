"""Streams and threads around a capture: what belongs to a graph, and who may disturb it.

A capture begins on one stream. Other streams enter it by waiting for one that is in it, and must be waited for before it ends.
Which stream a line of Python works on is a matter of its thread: each has a current stream of its own, the default one at first.
And a capture in the mode "global" watches all threads: a call that CUDA holds to be unsafe, such as taking new memory for a
stream outside, fails wherever it comes from, and the capture with it.

Mechanism: missing nodes
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/capture-failures.html
"""

import threading

import torch

NUMBERS = [1, 2, 3]
LARGE = 64 * 2**20


def eager():
    """1, 2, 3, one added and doubled: 4, 6, 8."""
    for number in NUMBERS:
        yield "replay", (torch.full((1,), number, device="cuda") + 1) * 2


def _replays(body, mode="global"):
    """Capture `body(x)` and replay it for each number."""
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    body(x)
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = body(x)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        yield "replay", y


def _forked(x, side, join):
    """Add one here and double on the side stream."""
    main = torch.cuda.current_stream()
    y = x + 1
    side.wait_stream(main)
    with torch.cuda.stream(side):
        z = y * 2
    if join:
        main.wait_stream(side)
    return z


def unjoined_bug():
    """A stream that was forked need not be waited for, if nobody needs its results at once: 4, 6, 8.

    Seen instead: an error at the end of the capture, "capturing stream has unjoined work".
    """
    side = torch.cuda.Stream()
    yield from _replays(lambda x: _forked(x, side, join=False))


def unjoined_fix():
    """A stream that was forked and joined becomes a branch of the graph: 4, 6, 8."""
    side = torch.cuda.Stream()
    yield from _replays(lambda x: _forked(x, side, join=True))


def default_stream_bug():
    """The default stream can be such a branch: 4, 6, 8.

    Seen instead: an error. The default stream is the one that CUDA calls legacy, and that one cannot be captured.
    """
    yield from _replays(lambda x: _forked(x, torch.cuda.default_stream(), join=True))


def _after_other_work(x, side, other, within):
    """Add a number that another stream has computed, and double; the wait for it stands within the capture or before."""
    if within:
        torch.cuda.current_stream().wait_stream(side)
    return (x + other) * 2


def _replays_after_other_work(within):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        other = torch.ones(1, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    yield from _replays(lambda x: _after_other_work(x, side, other, within))


def isolation_bug():
    """A capture can wait for what another stream was given before: 4, 6, 8.

    Seen instead: an error, "dependency created on uncaptured work in another stream". No graph could hold that wait.
    """
    yield from _replays_after_other_work(within=True)


def isolation_fix():
    """Other streams waited for before the capture, and not within it: 4, 6, 8."""
    yield from _replays_after_other_work(within=False)


def _in_a_thread(work, stream=None):
    """Do the work in a thread of its own, on its default stream or on the one given, and wait for the thread."""

    def on_stream():
        with torch.cuda.stream(stream):
            work()

    thread = threading.Thread(target=on_stream)
    thread.start()
    thread.join()


def _doubled_by_a_thread(x, y, stream):
    y.copy_(x + 1)
    _in_a_thread(lambda: y.mul_(2), stream)
    return y


def thread_bug():
    """What a thread does for the function that is captured is captured too: 4, 6, 8.

    Seen instead: 2, 3, 4. The thread's current stream is the default one. Its work ran once, during the capture.
    """
    y = torch.zeros(1, device="cuda")
    yield from _replays(lambda x: _doubled_by_a_thread(x, y, None))


def thread_fix():
    """A thread that is told the stream of the capture takes part in it: 4, 6, 8."""
    y = torch.zeros(1, device="cuda")
    yield from _replays(lambda x: _doubled_by_a_thread(x, y, torch.cuda.current_stream()))


def _beside_a_thread(work, mode="global"):
    """Replays of a graph during whose capture a thread has done something else."""

    def body(x):
        if torch.cuda.is_current_stream_capturing():
            _in_a_thread(work)
        return (x + 1) * 2

    yield from _replays(body, mode)


def thread_memory_bug():
    """Another thread may allocate a tensor during a capture: 4, 6, 8.

    Seen instead: an error in that thread, and one at the end of the capture. The tensor needed memory that torch did not have in
    its cache, and asking CUDA for some is not allowed beside a capture in the mode "global".
    """
    yield from _beside_a_thread(lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"))


def thread_memory_fix_local():
    """In the mode "thread_local" other threads do not matter: 4, 6, 8."""
    yield from _beside_a_thread(lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"), mode="thread_local")


def thread_memory_fix_before():
    """A thread whose memory was allocated before the capture may use it during the capture: 4, 6, 8."""
    buffer = torch.ones(LARGE, dtype=torch.uint8, device="cuda")
    yield from _beside_a_thread(lambda: buffer.fill_(1))


def side_memory_bug():
    """A library may allocate scratch memory for a stream of its own during a capture: 4, 6, 8.

    Seen instead: an error, in the one thread there is. For the captured stream torch lifts the ban, for others it does not.
    """

    def body(x):
        with torch.cuda.stream(torch.cuda.default_stream()):
            scratch = torch.empty(LARGE, dtype=torch.uint8, device="cuda")
        return (x + 1) * 2 * (scratch.numel() // LARGE)

    yield from _replays(body)


def side_memory_fix():
    """Scratch memory allocated for the captured stream comes from the graph's pool: 4, 6, 8."""
    yield from _replays(lambda x: (x + 1) * 2 * (torch.empty(LARGE, dtype=torch.uint8, device="cuda").numel() // LARGE))


def replay_in_thread():
    """A graph can be replayed by another thread than captured it: 4, 6, 8."""
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x + 1) * 2
    for number in NUMBERS:
        x.fill_(number)
        _in_a_thread(graph.replay)
        yield "replay", y


def capture_in_thread():
    """A graph can be captured by another thread than replays it: 4, 6, 8."""
    x, y, graph = torch.ones(1, device="cuda"), torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()

    def capture():
        with torch.cuda.graph(graph):
            y.copy_((x + 1) * 2)

    _in_a_thread(capture)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        yield "replay", y


def background_eager():
    """Work for the background, asked for once, is done once: 1, 1, 1."""
    for _ in NUMBERS:
        yield "replay", 1


def _count_in_background(priority):
    """Capture on a stream, have the 32nd stream after it count to one meanwhile, and replay."""
    x, count, graph, stream = torch.ones(1, device="cuda"), torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    background = [torch.cuda.Stream(priority=priority) for _ in range(32)][-1]
    with torch.cuda.graph(graph, stream=stream):
        x.add_(1)
        with torch.cuda.stream(background):
            count.add_(1)
    torch.cuda.synchronize()
    for _ in NUMBERS:
        graph.replay()
        yield "replay", count


def background_bug():
    """A new stream has nothing to do with the one that is captured: 1, 1, 1.

    Seen instead: 1, 2, 3. torch has 32 streams and hands them out in turn: this one is the captured stream, so the work was not
    done then and is done by each replay.
    """
    yield from _count_in_background(priority=0)


def background_fix():
    """A stream of high priority comes from 32 others: 1, 1, 1."""
    yield from _count_in_background(priority=-1)
