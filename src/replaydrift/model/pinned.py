"""Pinned host memory: a cache of blocks, each handed out again only once all queued copies that touch it are done."""

from __future__ import annotations

from typing import Any, Final

import torch

from replaydrift.model import arena
from replaydrift.model.allocator import Count
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE

_ROUND: Final = 512


class PinnedAllocator:
    """Blocks of powers of two.

    A block that was handed out in a capture, and that a recorded copy touches, is withheld for as long as a graph that recorded it lives.
    One from before the capture is free once its tensor is gone and the capture has ended, whatever a graph will read there.
    """

    def __init__(self) -> None:
        self._next = arena.DEVICE_END
        self._free: dict[int, list[int]] = {}
        self._busy_until: dict[int, float] = {}
        self._sizes: dict[int, int] = {}
        self._recorded: dict[int, int] = {}  # address: number of captures that hold it
        self._made_in: dict[int, object] = {}  # address: the capture in which it was handed out
        self._touched_in: dict[int, object] = {}  # address: the last capture that recorded a copy of a block from before it
        self._waiting: list[int] = []
        self.owned, self.owned_bytes, self.active, self.active_bytes = Count(), Count(), Count(), Count()

    def new_tensor(self, dtype: torch.dtype, size: Any, stride: Any, nbytes: int) -> torch.Tensor:
        """A tensor of this form in pinned memory."""
        length = max(_ROUND, 1 << (max(nbytes, 1) - 1).bit_length())
        address = self._take(length)
        self._made_in.pop(address, None)
        if DEVICE.capture is not None:
            self._made_in[address] = DEVICE.capture
        if DEVICE.observer is not None:
            DEVICE.observer.pinned(address, length)
        return arena.strided(arena.storage_at(address, nbytes, lambda: self._gone(address)), dtype, size, stride)

    def touch(self, tensor: torch.Tensor, until: float) -> None:
        """Say that a queued copy uses the tensor's block until that time."""
        self.busy(tensor.untyped_storage().data_ptr(), until)

    def busy(self, address: int, until: float) -> None:
        """The same, by the block's address: a replay uses the blocks its graph recorded."""
        self._busy_until[address] = max(self._busy_until.get(address, 0.0), until)

    def record(self, tensor: torch.Tensor) -> int | None:
        """The address of the tensor's block, for `forget`, where the capture that records a copy of it withholds it; else None."""
        address = tensor.untyped_storage().data_ptr()
        if self._made_in.get(address) is not DEVICE.capture:
            self._touched_in[address] = DEVICE.capture
            return None
        self._recorded[address] = self._recorded.get(address, 0) + 1
        return address

    def forget(self, address: int) -> None:
        """A graph that had recorded the block is gone."""
        self._recorded[address] -= 1
        if not self._recorded[address]:
            del self._recorded[address]

    def empty_cache(self) -> None:
        """Nothing to do: given-back host memory is never seen by a program, which cannot read it any more."""

    def _gone(self, address: int) -> None:
        if DEVICE.observer is not None:
            DEVICE.observer.unpinned(address)
        self._waiting.append(address)

    def _take(self, length: int) -> int:
        still: list[int] = []
        for address in self._waiting:
            in_use = DEVICE.capture is not None and self._touched_in.get(address) is DEVICE.capture
            if in_use or address in self._recorded or self._busy_until.get(address, 0.0) > CLOCK.now:
                still.append(address)
                continue
            self._free.setdefault(self._sizes[address], []).append(address)
            self.active.take(1)
            self.active_bytes.take(self._sizes[address])
        self._waiting = still
        cached = self._free.get(length)
        if cached:
            self.active.add(1)
            self.active_bytes.add(length)
            return cached.pop(0)
        address = self._next
        if address + length > arena.PINNED_END:
            raise RuntimeError(f"the CPU model has {arena.PINNED_BYTES >> 20} MiB of pinned memory, all in use: ask for less")
        self._next += length
        self._sizes[address] = length
        for count, amount in ((self.owned, 1), (self.active, 1), (self.owned_bytes, length), (self.active_bytes, length)):
            count.add(amount)
        return address


PINNED = PinnedAllocator()
