"""Python's garbage collector and captures: when it runs, and what it then destroys.

Up to torch 2.8 `torch.cuda.graph` ran the collector before each capture. Since then it does so only on demand, because it took
longer than the capture (https://github.com/pytorch/pytorch/pull/158193). Two things follow. Memory that only dead reference
cycles hold is still held during the capture. And the collector, which Python starts on its own whenever enough objects have been
made, may start within the capture. If it then finds a dead CUDAGraph, destroying that one is a call that CUDA forbids while a
stream is captured: a warning goes to stderr, and the new capture is lost.

Mechanism: held memory
Source: https://github.com/pytorch/pytorch/pull/161037
"""

import gc
import unittest

import torch

LARGE = 16 * 2**20


class _Cycle:
    """Holds something, and itself, so that only the collector can free either."""

    def __init__(self, held):
        self.held, self.itself = held, self


def _some_graph():
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
    return graph


def _leave_a_dead_graph():
    """From here on a captured graph waits for the collector, which does not start by itself any more."""
    gc.collect()
    gc.disable()
    _Cycle(_some_graph())


def _replays(during_capture, mode="global"):
    """Double 1, 2, 3 with a graph whose capture calls `during_capture()` as well."""
    x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = x * 2
        during_capture()
    for number in (1, 2, 3):
        x.fill_(number)
        graph.replay()
        yield "replay", y


def eager():
    """1, 2, 3 doubled: 2, 4, 6."""
    for number in (1, 2, 3):
        yield "replay", torch.full((1,), number, device="cuda") * 2


def cycle_bug():
    """The collector may run during a capture: 2, 4, 6.

    Seen instead: an error at the end of the capture. The collector destroyed a graph that had died before.
    """
    _leave_a_dead_graph()
    yield from _replays(gc.collect)


def _make_objects():
    """What any Python code does: enough of it starts the collector, here after ten objects instead of hundreds."""
    gc.set_threshold(10)
    gc.enable()
    return [[] for _ in range(1000)]


def automatic_bug():
    """Code that is captured may make as many Python objects as it likes: 2, 4, 6.

    Seen instead: the same error, now and then. Whether the collector starts within the capture, and whether a graph has died by
    then, depends on all that the program did before.
    """
    _leave_a_dead_graph()
    yield from _replays(_make_objects)


def automatic_fix_collect():
    """A collection before the capture leaves none to be found during it: 2, 4, 6."""
    _leave_a_dead_graph()
    gc.collect()
    yield from _replays(_make_objects)


def automatic_fix_disable():
    """With the collector off during the capture: 2, 4, 6. It destroys the dead graph afterwards."""
    _leave_a_dead_graph()
    yield from _replays(lambda: [[] for _ in range(1000)])
    gc.enable()
    gc.collect()


def automatic_fix_freeze():
    """With all objects so far moved out of the collector's sight by gc.freeze(): 2, 4, 6."""
    _leave_a_dead_graph()
    gc.freeze()
    yield from _replays(_make_objects)
    gc.unfreeze()


def _collect_at_each_capture():
    if not hasattr(torch.compiler.config, "force_cudagraph_gc"):
        raise unittest.SkipTest("needs torch.compiler.config.force_cudagraph_gc")
    torch.compiler.config.force_cudagraph_gc = True


def automatic_fix_force():
    """With torch told to collect at the beginning of each capture, as it did up to 2.8: 2, 4, 6."""
    _leave_a_dead_graph()
    _collect_at_each_capture()
    yield from _replays(_make_objects)


def evict_bug():
    """A cache of graphs may drop an old graph while a new one is captured: 2, 4, 6.

    Seen instead: the same error. No cycle and no collector are needed; the last reference to go is enough.
    """
    cache = [_some_graph()]
    yield from _replays(cache.clear)


def evict_fix():
    """A cache that drops the old graph first, and captures then, gives 2, 4, 6."""
    cache = [_some_graph()]
    cache.clear()
    yield from _replays(cache.clear)


def evict_workaround_relaxed():
    """In the mode "relaxed", which allows calls that may be unsafe, dropping a graph does not lose the capture: 2, 4, 6."""
    cache = [_some_graph()]
    yield from _replays(cache.clear, mode="relaxed")


def tensor_in_capture():
    """A dead cycle that holds only a tensor may be collected during a capture: 2, 4, 6.

    The tensor's memory goes back to torch's own cache, and CUDA is not called.
    """
    gc.collect()
    gc.disable()
    _Cycle(torch.ones(1, device="cuda"))
    yield from _replays(gc.collect)


def _large_bytes(kind):
    return torch.cuda.memory_stats()[f"{kind}_bytes.large_pool.current"]


def _bytes_after_a_capture(held, before_capture=lambda: None):
    """Bytes that dead objects hold once a graph has been captured; `held` makes what they hold."""
    gc.collect()
    gc.disable()
    _some_graph()
    before = _large_bytes("allocated")
    _Cycle(held())
    before_capture()
    graph = _some_graph()
    yield "capture", _large_bytes("allocated") - before
    del graph


def memory_eager():
    """Nobody holds anything: 0 bytes."""
    yield "capture", 0


def memory_bug():
    """A capture finds the memory of dead objects free: 0 bytes.

    Seen instead: 16777216 bytes, held until the collector comes to it. Up to torch 2.8 each capture began with a collection.
    """
    yield from _bytes_after_a_capture(lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"))


def memory_fix_collect():
    """A collection before the capture frees them: 0 bytes."""
    yield from _bytes_after_a_capture(lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"), gc.collect)


def memory_fix_force():
    """torch.compiler.config.force_cudagraph_gc brings the old behaviour back: 0 bytes."""
    yield from _bytes_after_a_capture(lambda: torch.empty(LARGE, dtype=torch.uint8, device="cuda"), _collect_at_each_capture)


class _Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1, device="cuda"))

    def forward(self, x):
        return x * self.scale


def _graphed_and_dropped():
    """Make a graphed module with 16 MiB of input and output, and drop it."""
    gc.collect()
    gc.disable()
    x = torch.ones(LARGE // 4, device="cuda", requires_grad=True)
    torch.cuda.make_graphed_callables(_Scale(), (x,))


def callable_bug():
    """A graphed module that was dropped has no part in a later capture: 2, 4, 6.

    Seen instead: up to 2.14, the same error. The module, its autograd function and their graphs refer to each other in a circle,
    so the graphs wait for the collector (https://github.com/pytorch/pytorch/pull/195397).
    """
    _graphed_and_dropped()
    yield from _replays(gc.collect)


def callable_fix():
    """A collection after the module was dropped: 2, 4, 6 on every release."""
    _graphed_and_dropped()
    gc.collect()
    yield from _replays(gc.collect)


def callable_memory_eager():
    """Nothing is held: True."""
    yield "capture", True


def callable_memory_bug():
    """A graphed module that was dropped gives its memory back: True.

    Seen instead: False. From 2.15 on its graphs go with it; what they read and wrote still waits for the collector, since the
    methods of a class refer to it, and the class to them.
    """
    _graphed_and_dropped()
    torch.cuda.empty_cache()
    yield "capture", _large_bytes("reserved") == 0


def callable_memory_fix():
    """A collection after the module was dropped gives its memory back: True."""
    _graphed_and_dropped()
    gc.collect()
    torch.cuda.empty_cache()
    yield "capture", _large_bytes("reserved") == 0
