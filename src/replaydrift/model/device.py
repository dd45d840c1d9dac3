"""The one device: its memory, its streams, the captures under way. Everything else asks here where it is and what goes on."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from itertools import count
from typing import Any, Final, NoReturn

import torch

from replaydrift.model import arena, rules
from replaydrift.model.allocator import CachingAllocator, NobodyHolds, OutOfMemory
from replaydrift.model.blocks import DEFAULT_POOL, Block, PoolId
from replaydrift.model.captures import Capture
from replaydrift.model.clock import CLOCK, DEFAULT_STREAM
from replaydrift.model.costs import COSTS
from replaydrift.model.failures import STREAM_CAPTURE_UNSUPPORTED, cuda_error

STREAMS: Final = 32  # torch hands out its side streams round robin from a pool of this size, for each priority
PRIORITIES: Final = 6  # 0 to -5


class _Current(threading.local):
    stream = DEFAULT_STREAM


class _PoolsInUse(threading.local):
    """The pools that `torch.cuda.use_mem_pool` routes this thread's allocations to, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[PoolId] = []


class Device:
    """All state of the modelled GPU."""

    def __init__(self) -> None:
        self.allocator = CachingAllocator(
            arena.DEVICE_START, arena.DEVICE_END, self._unmapped, self._segment_wanted, age_of=rules.use("oldest-of-equal-blocks")
        )
        self.captures: dict[int, Capture] = {}  # by stream that takes part
        self.blocks: dict[int, Block] = {}  # live blocks by address
        self._current = _Current()
        self._deferred: list[tuple[float, Block]] = []
        self._next_stream = [count() for _ in range(PRIORITIES)]
        self._for_a_tensor = False  # an allocation that a program asks for, as opposed to one of torch's own
        self.next_capture = count(1)
        self.next_pool = count(1)
        self._pools_in_use = _PoolsInUse()
        self._used: dict[PoolId, int] = {}  # pools that some thread's allocations are routed to
        self.observer: Any = None  # told of every operation, where somebody listens

    def reset(self) -> None:
        """Start afresh, as a new process would: nothing may be alive any more."""
        self.empty_cache()
        self.__init__()  # type: ignore[misc]

    @property
    def stream(self) -> int:
        """The stream that work goes to now, in this thread."""
        return self._current.stream

    @stream.setter
    def stream(self, stream: int) -> None:
        self._current.stream = stream

    @property
    def capture(self) -> Capture | None:
        """The capture that records the current stream; None where work runs."""
        return self.captures.get(self._current.stream) if self.captures else None

    @property
    def pool_in_use(self) -> PoolId:
        """Where this thread allocates when it is not captured: the default pool, or the one of `torch.cuda.use_mem_pool`."""
        stack = self._pools_in_use.stack
        return stack[-1] if stack else DEFAULT_POOL

    @property
    def pools_entered(self) -> int:
        """How many uses of pools this thread is in."""
        return len(self._pools_in_use.stack)

    def pool_for(self, capture: Capture) -> PoolId:
        """Where this thread allocates for a capture: what was begun last counts, the capture or the use of a pool (from 2.10 on)."""
        stack = self._pools_in_use.stack
        return stack[-1] if len(stack) > capture.pools_before and capture.thread == threading.get_ident() else capture.pool

    def recorded_to(self, pool: PoolId) -> bool:
        """True where a capture, or a use of the pool by any thread, sends allocations there now."""
        return self._used.get(pool, 0) > 0 or any(capture.pool == pool for capture in self.captures.values())

    def begin_recording_to(self, pool: PoolId) -> None:
        """Hold the pool once more; RuntimeError where it is recorded to already, or where nobody holds it any more."""
        try:
            self.allocator.hold(pool)
        except NobodyHolds:
            raise RuntimeError(rules.text("pool-without-holder")) from None
        if self.allocator.pools[pool].under_way:
            raise RuntimeError(rules.text("failed-capture-stays-under-way"))
        if self.recorded_to(pool):
            raise RuntimeError("beginAllocateToPool: already recording to mempool_id")

    def use_pool(self, pool: PoolId) -> None:
        """Route this thread's allocations to the pool, and hold it; RuntimeError where the pool is recorded to already."""
        self.begin_recording_to(pool)
        self._used[pool] = 1
        self._pools_in_use.stack.append(pool)

    def stop_using_pool(self, pool: PoolId) -> None:
        """End the innermost use of the pool; it stays held."""
        stack = self._pools_in_use.stack
        self._used.pop(pool, None)
        if pool in stack:
            del stack[len(stack) - 1 - stack[::-1].index(pool)]

    def new_stream(self, priority: int = 0) -> int:
        """The next side stream of torch's pool for this priority, 0 or a number below."""
        return 1 + STREAMS * -priority + next(self._next_stream[-priority]) % STREAMS

    def allocate(self, size: int, stream: int | None = None, pool: PoolId | None = None) -> Block:
        """A block for the current stream: from the capture's private pool where it is captured, else from the default pool."""
        where = self.stream if stream is None else stream
        if pool is None:
            capture = self.captures.get(where)
            if capture and capture.invalid and rules.holds("lost-capture-refuses-memory"):
                raise RuntimeError(rules.text("lost-capture-refuses-memory"))
            pool = self.pool_for(capture) if capture else self.pool_in_use
        if self._deferred:
            self._free_deferred()
        try:
            block = self.allocator.allocate(size, where, pool)
        except OutOfMemory:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size / 2**20:.2f} MiB. The CPU model's device has "
                f"{arena.DEVICE_BYTES / 2**30:.2f} GiB, of which {self.allocator.statistics.allocated.current / 2**30:.2f} GiB are allocated.",
            ) from None
        self.blocks[block.address] = block
        if self.observer is not None:
            self.observer.allocated(block)
        return block

    def free(self, block: Block) -> None:
        """Give the block back: at once, or after other streams that `record_stream` named are done with it."""
        self.blocks.pop(block.address, None)
        if self.observer is not None:
            self.observer.freed(block)
        if block.uses:
            self._deferred.append((max(CLOCK.reached(stream) for stream in block.uses), block))
            return
        self.allocator.free(block)

    @property
    def pending(self) -> list[Block]:
        """Blocks that were freed and wait for other streams: neither in use nor to be had."""
        return [block for _, block in self._deferred]

    def _free_deferred(self) -> None:
        if self.captures:
            return  # An event cannot be asked about while a stream is captured.
        ready = [block for when, block in self._deferred if when <= CLOCK.now]
        self._deferred = [(when, block) for when, block in self._deferred if when > CLOCK.now]
        for block in ready:
            if self.observer is not None:
                self.observer.released(block)
            self.allocator.free(block)

    def _segment_wanted(self, stream: int) -> None:
        """Refuse as cudaMalloc is beside a capture. For a stream in a capture torch lifts the ban."""
        if not self._for_a_tensor or stream in self.captures:
            return
        own = threading.get_ident()
        captures = set(self.captures.values())
        watching = [found for found in captures if found.mode == "global" or (found.mode == "thread_local" and found.thread == own)]
        if watching:
            self.refuse(watching, "an allocation that needs new memory for a stream outside")

    def refuse(self, captures: Iterable[Capture], what: str, error: tuple[int, str, str] = STREAM_CAPTURE_UNSUPPORTED) -> NoReturn:
        """Raise as CUDA does for a wait inside a capture; the captures are lost. `what` names the call for a person."""
        for capture in captures:
            capture.invalid = True
        rules.use("sync-in-capture")
        if self.observer is not None:
            self.observer.refused("sync-in-capture", what)
        raise cuda_error(error)

    def _unmapped(self, address: int, size: int) -> None:
        arena.zero(address, size)
        if self.observer is not None:
            self.observer.unmapped(address, size)

    def empty_cache(self) -> None:
        """What `torch.cuda.empty_cache` does."""
        self._free_deferred()
        self.allocator.empty_cache()

    def new_tensor(self, dtype: torch.dtype, size: Any, stride: Any, nbytes: int) -> torch.Tensor:
        """A tensor of this form in a block of its own, on the current stream; what it holds is what lay there."""
        if nbytes == 0:
            return arena.strided(arena.empty_storage(), dtype, size, stride)
        self._for_a_tensor = True
        try:
            block = self.allocate(math.ceil(nbytes * max(COSTS.memory_scale, 1.0)))
        finally:
            self._for_a_tensor = False
        storage = arena.storage_at(block.address, nbytes, lambda: self.free(block))
        return arena.strided(storage, dtype, size, stride)

    def block_of(self, tensor: torch.Tensor) -> Block | None:
        """The live block that holds the tensor's storage."""
        return self.blocks.get(tensor.untyped_storage().data_ptr())


DEVICE = Device()
