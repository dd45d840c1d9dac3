"""Pinned host memory: a cache of blocks, each handed out again only once the streams that copied from or to it have got that far."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from replaydrift.model import arena, rules
from replaydrift.model.blocks import DEFAULT_POOL, Count, PoolId
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import INVALID_VALUE, cuda_error

_ROUND: Final = 512


@dataclass(eq=False)
class _Block:
    address: int
    size: int
    pool: PoolId
    in_capture: bool = False  # whether it was last handed out in a capture
    streams: set[int] = field(default_factory=set)  # that copied from or to it since
    free_from: float | None = None  # when the events that its end recorded have all come; None where a capture recorded one


class PinnedAllocator:
    """Blocks of powers of two, with the rules of `ATen/core/CachingHostAllocator.h`, which are the same from 2.11 to 2.15.

    A capture takes its blocks from a pool of its own, as on the device. When a block's tensor goes, an event is recorded on each stream
    that copied from or to it, and the block is free when all have come, whatever a graph will read there. One that was handed out in
    a capture and copied is never handed out again. The events are asked in their order, at the next allocation in the pool.
    """

    def __init__(self) -> None:
        self._next = arena.DEVICE_END
        self._blocks: dict[int, _Block] = {}  # by address
        self._free: dict[tuple[PoolId, int], list[_Block]] = {}  # by pool and size, the last one in is the first one out
        self._waiting: deque[_Block] = deque()  # of the default pool, for their events; a capture's own pool never has any
        self.owned, self.owned_bytes, self.active, self.active_bytes = Count(), Count(), Count(), Count()

    def new_tensor(self, dtype: torch.dtype, size: Any, stride: Any, nbytes: int) -> torch.Tensor:
        """A tensor of this form in pinned memory."""
        block = self._take(max(_ROUND, 1 << (max(nbytes, 1) - 1).bit_length()))
        block.in_capture = DEVICE.capture is not None
        if DEVICE.observer is not None:
            DEVICE.observer.pinned(block.address, block.size)
        return arena.strided(arena.storage_at(block.address, nbytes, lambda: self._gone(block)), dtype, size, stride)

    def used(self, tensor: torch.Tensor) -> None:
        """Say that a copy from or to the tensor's block, which the host does not wait for, was queued or recorded on the current stream."""
        block = self._blocks[tensor.untyped_storage().data_ptr()]
        block.streams.add(DEVICE.stream)
        if block.in_capture:
            rules.use("captured-pinned-withheld")

    def empty_cache(self) -> None:
        """Nothing to do: given-back host memory is never seen by a program, which cannot read it any more."""

    def _gone(self, block: _Block) -> None:
        if DEVICE.observer is not None:
            DEVICE.observer.unpinned(block.address)
        streams, block.streams = block.streams, set()
        if not streams:
            self._put_back(block)
        elif not block.in_capture:
            captured = any(stream in DEVICE.captures for stream in streams)
            block.free_from = None if captured else max(CLOCK.reached(stream) for stream in streams)
            self._waiting.append(block)

    def _put_back(self, block: _Block) -> None:
        self._free.setdefault((block.pool, block.size), []).append(block)
        self.active.take(1)
        self.active_bytes.take(block.size)

    def _take(self, length: int) -> _Block:
        pool = DEFAULT_POOL if DEVICE.capture is None else DEVICE.capture.pool
        if pool == DEFAULT_POOL:
            self._ask_events()
        cached = self._free.get((pool, length))
        if cached:
            self.active.add(1)
            self.active_bytes.add(length)
            return cached.pop()
        address = self._next
        if address + length > arena.PINNED_END:
            raise RuntimeError(f"the CPU model has {arena.PINNED_BYTES >> 20} MiB of pinned memory, all in use: ask for less")
        self._next += length
        block = self._blocks[address] = _Block(address, length, pool)
        for count, amount in ((self.owned, 1), (self.active, 1), (self.owned_bytes, length), (self.active_bytes, length)):
            count.add(amount)
        return block

    def _ask_events(self) -> None:
        """Put blocks back whose events have come, up to the first that has not. To ask one that a capture recorded is an error."""
        while self._waiting:
            block = self._waiting[0]
            if block.free_from is None:
                self._waiting.popleft()
                raise cuda_error(INVALID_VALUE)
            if block.free_from > CLOCK.now:
                return
            self._put_back(self._waiting.popleft())


PINNED = PinnedAllocator()
