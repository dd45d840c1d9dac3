"""Pools of a user's own: `torch.cuda.MemPool`, and the routing of a thread's allocations to one (`torch.cuda.use_mem_pool`)."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from replaydrift.model.blocks import PoolId
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import lack


class MemPool:
    """A pool that is held for as long as this object lives. What is free in it goes back with the object, if no graph holds the pool."""

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, *_more: Any, **_options: Any) -> None:
        if allocator is not None:
            raise lack("pools with an allocator of one's own")
        self._id: PoolId = (0, next(DEVICE.next_pool))
        DEVICE.allocator.hold(self._id)

    @property
    def id(self) -> PoolId:
        """The pool's id, as `torch.cuda.graph(pool=...)` takes it."""
        return self._id

    def use_count(self) -> int:
        """How often the pool is held: by this object, by graphs, by uses of it."""
        return DEVICE.allocator.pools[self._id].users

    def snapshot(self, *_arguments: Any, **_options: Any) -> list[dict[str, Any]]:
        """The pool's segments, in the form of `torch.cuda.memory_snapshot`."""
        segments: list[dict[str, Any]] = torch.cuda.memory_snapshot(self._id)
        return segments

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # At interpreter exit parts of the model are gone.
            DEVICE.allocator.release(self._id)
            DEVICE.allocator.empty_cache(only=self._id)


def begin(_device: int, pool: Any) -> None:
    """Route this thread's allocations to the pool."""
    DEVICE.use_pool(tuple(pool))


def end(_device: int, pool: Any) -> None:
    """End that."""
    DEVICE.stop_using_pool(tuple(pool))


def release(_device: int, pool: Any) -> None:
    """Hold the pool once less."""
    DEVICE.allocator.release(tuple(pool))


def install() -> None:
    """Put the class, and the functions that `torch.cuda.memory` has imported from C, in place."""
    memory: Any = torch.cuda.memory
    for name, function in (
        ("_cuda_beginAllocateCurrentThreadToPool", begin),
        ("_cuda_beginAllocateToPool", begin),
        ("_cuda_endAllocateToPool", end),
        ("_cuda_releasePool", release),
    ):
        setattr(torch._C, name, function)
        setattr(memory, name, function)
    memory.MemPool = torch.cuda.MemPool = MemPool  # type: ignore[misc]
