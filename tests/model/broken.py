"""Ways to break one mechanism of the model, each in the process it is called in, for good."""

from __future__ import annotations

from typing import Any


def nothing() -> None:
    """The model as it is."""


def blocks_are_never_handed_out_again() -> None:
    """Every allocation gets a segment of its own."""
    from replaydrift.model.allocator import CachingAllocator

    CachingAllocator._best_fit = lambda *_: None


def a_graph_keeps_its_inputs_alive() -> None:
    """A recorded operation holds its tensors in place of their addresses."""
    from replaydrift.model import copies, kernels

    keep = lambda tensor: tensor.detach()[...]  # noqa: E731 - a view shares the storage, and so the block
    kernels.freeze = copies.alias = keep


def gradients_accumulate_out_of_place() -> None:
    """As torch does where a dispatch mode is active."""
    from replaydrift.model import accumulation

    accumulation.is_one = lambda *_: False


def work_takes_no_time() -> None:
    """Whatever is queued is done at once."""
    from replaydrift.model.clock import Clock

    queue, catch_up = Clock.submit, Clock.push

    def submit(self: Any, stream: int, _duration: float, work: Any, **_more: Any) -> float:
        return queue(self, stream, 0.0, work)

    Clock.submit = submit
    Clock.occupy = lambda *_: None
    Clock.push = lambda self, _when, work: catch_up(self, self.now, work)
    Clock.wait = lambda *_: None


def captures_have_no_pool_of_their_own() -> None:
    """All memory comes from the default pool."""
    from replaydrift.model.allocator import CachingAllocator
    from replaydrift.model.blocks import DEFAULT_POOL

    allocate = CachingAllocator.allocate
    CachingAllocator.allocate = lambda self, requested, stream, _pool=DEFAULT_POOL: allocate(self, requested, stream, DEFAULT_POOL)


def every_graph_has_its_own_pool() -> None:
    """`pool=` is ignored."""
    from replaydrift.model import graphs

    begin = graphs.GraphBase.capture_begin
    graphs.GraphBase.capture_begin = lambda self, pool=None, capture_error_mode="global": begin(self, None, capture_error_mode)


def a_replay_draws_the_numbers_of_the_capture() -> None:
    """Generators are not moved on by replays."""
    from replaydrift.model import generators

    take = generators.State.take

    def frozen(self: Any, amount: int) -> int:
        begin = take(self, amount)
        self.offset = begin
        return begin

    generators.State.take = frozen


def every_stream_is_captured() -> None:
    """Work on the default stream becomes part of whichever capture is under way."""
    from replaydrift.model.device import Device

    def capture(self: Any) -> Any:
        found = next(iter(self.captures.values()), None)
        if found is not None:
            found.tails.setdefault(self.stream, frozenset())
        return found

    Device.capture = property(capture)


def events_do_not_fork_a_capture() -> None:
    """A stream that waits for a captured event stays outside."""
    from replaydrift.model import streams

    wait = streams.EventBase.wait

    def only_outside(self: Any, stream: Any = None) -> None:
        if self._place is None:
            wait(self, stream)

    streams.EventBase.wait = only_outside


def events_without_a_time_are_not_waited_for() -> None:
    """The host's wait for such an event comes back at once."""
    from replaydrift.model import streams

    wait = streams.EventBase.synchronize
    streams.EventBase.synchronize = lambda self: wait(self) if self._timing else None


def pageable_copies_are_captured() -> None:
    """A copy from pageable memory is recorded with the bytes of the moment."""
    from replaydrift.model import copies

    copies._refuse_pageable = lambda: None


def kernels_are_loaded_before_they_are_launched() -> None:
    """As with CUDA_MODULE_LOADING=EAGER: no launch waits."""
    from replaydrift.model import loading

    loading.load = lambda _operator: None


def captured_pinned_blocks_are_handed_out_again() -> None:
    """A pinned block that a graph copies from is free once its tensor dies, wherever it was made."""
    from replaydrift.model.pinned import PinnedAllocator

    PinnedAllocator.used = lambda *_: None


def pinned_blocks_are_never_handed_out_again() -> None:
    """Every pinned tensor gets new memory."""
    from replaydrift.model.pinned import PinnedAllocator

    PinnedAllocator._gone = lambda *_: None


def the_host_may_wait_in_a_capture() -> None:
    """`item()` gives what lies there."""
    from replaydrift.model.device import Device

    Device.refuse = lambda *_: None


def a_capture_runs_what_it_records() -> None:
    """Recorded work runs once during the capture as well."""
    from replaydrift.model.captures import Capture

    add = Capture.add

    def run_too(self: Any, stream: int, node: Any) -> None:
        add(self, stream, node)
        node.work()

    Capture.add = run_too


def free_neighbours_are_not_joined() -> None:
    """A freed block stays the size it was."""
    from bisect import insort

    from replaydrift.model.allocator import CachingAllocator

    def free(self: Any, block: Any) -> None:
        for statistics in (self.statistics, self.statistics_of[block.small]):
            statistics.allocated.take(block.size)
            statistics.requested.take(block.requested)
            statistics.blocks.take(1)
        block.allocated, block.requested = False, 0
        block.pool.live -= 1
        block.uses.clear()
        insort(block.pool.free[block.small], (block.key, block), key=lambda entry: entry[0])

    CachingAllocator.free = free
