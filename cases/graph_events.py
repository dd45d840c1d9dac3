"""Events in a graph: marks that order its branches, or nodes that the world outside can see.

An ordinary event that is recorded in a capture becomes no node. It names a place in the graph, so that another stream can be
forked there, and that is all: after the capture nobody can wait for it, ask it or take its time. An event that was made with
`external=True`, which there is since torch 2.8, becomes a node: each replay records it anew, or waits for what was recorded
last outside. The graphs here spin for some 50 ms, so that what does not wait is seen not to wait.

Mechanism: async replay
Source: https://github.com/pytorch/pytorch/pull/155372
"""

import inspect
import unittest

import torch

NUMBERS = [1, 2, 3]
CYCLES = 100_000_000


def _external(**more):
    if "external" not in inspect.signature(torch.cuda.Event.__new__).parameters:
        raise unittest.SkipTest("needs events with external=True")
    return torch.cuda.Event(external=True, **more)


def timing_eager():
    """Events around a spin of 50 ms show more than 10 ms: True."""
    for _ in NUMBERS:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.cuda._sleep(CYCLES)
        end.record()
        end.synchronize()
        yield "replay", start.elapsed_time(end) > 10


def _times(start, end):
    """Capture a spin between two events, and ask them after each replay."""
    x, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        start.record()
        torch.cuda._sleep(CYCLES)
        x.add_(1)
        end.record()
    for _ in NUMBERS:
        graph.replay()
        torch.cuda.synchronize()
        yield "replay", start.elapsed_time(end) > 10


def timing_bug():
    """Events with timing that are captured time each replay: True.

    Seen instead: an error, "invalid argument", from the question whether they have come, which torch asks first. CUDA has a text
    for events that a capture recorded, and keeps it for the time while the capture goes on.
    """
    yield from _times(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))


def timing_bug_flag():
    """External events time each replay: True.

    Seen instead: an error. That they are external does not give them a clock; `enable_timing=True` is needed as well.
    """
    yield from _times(_external(), _external())


def timing_fix():
    """External events with timing time each replay, and parts of one: True."""
    yield from _times(_external(enable_timing=True), _external(enable_timing=True))


def timing_outside():
    """Ordinary events around the replay time the whole of it: True."""
    x, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(CYCLES)
        x.add_(1)
    for _ in NUMBERS:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        yield "replay", start.elapsed_time(end) > 10


def eager():
    """1, 2, 3 doubled: 2, 4, 6."""
    for number in NUMBERS:
        yield "replay", 2 * number


def _first_half(event):
    """A graph that doubles x into pinned memory, records the event, and goes on spinning; the host waits for the event."""
    x, host, graph = torch.zeros(1, device="cuda"), torch.zeros(1, pin_memory=True), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        host.copy_(x * 2, non_blocking=True)
        event.record()
        torch.cuda._sleep(CYCLES)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        event.synchronize()
        yield "replay", host


def wait_bug():
    """The host can wait for an event in the middle of a graph: 2, 4, 6.

    Seen instead: an error. There is nothing to wait for. It says "invalid argument", as another library met it,
    https://github.com/NVIDIA/warp/issues/983, though CUDA has a text for captured events.
    """
    yield from _first_half(torch.cuda.Event())


def wait_fix():
    """The host can wait for an external event in the middle of a graph, and for no more than that: 2, 4, 6."""
    yield from _first_half(_external())


def stream_wait():
    """Another stream can wait for an external event in a graph, and read what is ready by then: 2, 4, 6."""
    x, y, ready, side = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda"), _external(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(CYCLES)
        y.copy_(x * 2)
        ready.record()
        torch.cuda._sleep(CYCLES)
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        side.wait_event(ready)
        with torch.cuda.stream(side):
            seen = y.clone()
        torch.cuda.synchronize()
        yield "replay", seen


def _fed_from_outside(event, first_record):
    """A graph that waits for the event and doubles x, which a side stream fills after a spin and marks with the event."""
    x, y, side = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda"), torch.cuda.Stream()
    y.copy_(x * 2)
    if first_record:
        event.record()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        event.wait()
        y.copy_(x * 2)
    for number in NUMBERS:
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES)
            x.fill_(number)
            event.record()
        graph.replay()
        torch.cuda.synchronize()
        yield "replay", y


def feed_bug():
    """A captured wait for an external event waits for what is recorded before each replay: 2, 4, 6.

    Seen instead: 0, 2, 4. The event had not been recorded when the wait was captured. torch makes the CUDA event at the first
    record, and a wait for one that is not made yet does nothing at all. From 2.15 on 2, 2, 4: `torch.zeros` fills without a
    kernel there, so the loop's first fill loads one, which waits for the spin: an accident that orders one turn.
    """
    yield from _fed_from_outside(_external(), first_record=False)


def feed_bug_internal():
    """A captured wait for an ordinary event waits for what is recorded before each replay: 2, 4, 6.

    Seen instead: an error, since a graph cannot depend on work that is not in it.
    """
    yield from _fed_from_outside(torch.cuda.Event(), first_record=True)


def feed_fix():
    """A captured wait for an external event that was recorded once before the capture: 2, 4, 6."""
    yield from _fed_from_outside(_external(), first_record=True)


def fork():
    """An ordinary event orders two streams within a capture: 2, 4, 6."""
    x, graph, side = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    begun, done = torch.cuda.Event(), torch.cuda.Event()
    with torch.cuda.graph(graph):
        y = x + x
        begun.record()
        side.wait_event(begun)
        with torch.cuda.stream(side):
            z = y.clone()
            done.record()
        done.wait()
    for number in NUMBERS:
        x.fill_(number)
        graph.replay()
        yield "replay", z


def reuse_eager():
    """An event that was recorded and waited for has come: True."""
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    yield "replay", event.query()


def reuse():
    """An event that was recorded in a capture is an ordinary one again once it is recorded outside: True."""
    x, graph, event = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Event()
    with torch.cuda.graph(graph):
        x.add_(1)
        event.record()
    graph.replay()
    event.record()
    event.synchronize()
    yield "replay", event.query()
