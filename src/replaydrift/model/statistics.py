"""Memory statistics in the form that `torch.cuda.memory_stats` reads: nested counts of the model's allocator."""

from __future__ import annotations

from typing import Any

from replaydrift.model import rules
from replaydrift.model.blocks import DEFAULT_POOL, Count, Statistics
from replaydrift.model.device import DEVICE
from replaydrift.model.pinned import PINNED


def memory_stats() -> dict[str, Any]:
    """What `torch._C._cuda_memoryStats` gives: for each count, of all blocks and of small and large ones, four numbers."""
    allocator = DEVICE.allocator
    _note_kept_pools()
    free = [block for block in allocator.blocks() if not block.whole_segment]
    tree: dict[str, Any] = {}
    for pool, found in (
        ("all", allocator.statistics),
        ("small_pool", allocator.statistics_of[True]),
        ("large_pool", allocator.statistics_of[False]),
    ):
        split = [block.size for block in free if pool == "all" or block.small == (pool == "small_pool")]
        for name, values in _by_name(found, split).items():
            tree.setdefault(name, {})[pool] = values
    tree |= {"num_alloc_retries": 0, "num_ooms": 0, "num_sync_all_streams": 0, "max_split_size": -1}
    tree |= {"num_device_alloc": allocator.statistics.segments.gained, "num_device_free": allocator.statistics.segments.lost}
    tree["oversize_allocations"] = tree["oversize_segments"] = _four(Count())
    return tree


def _by_name(found: Statistics, split: list[int]) -> dict[str, dict[str, int]]:
    """Torch's names. Of the free pieces of split segments only the present is known: their peak is given as 0."""
    pieces, piece_bytes = Count(), Count()
    pieces.current, piece_bytes.current = len(split), sum(split)
    counts = {
        "allocation": found.blocks,
        "segment": found.segments,
        "active": found.blocks,
        "inactive_split": pieces,
        "allocated_bytes": found.allocated,
        "reserved_bytes": found.reserved,
        "active_bytes": found.allocated,
        "inactive_split_bytes": piece_bytes,
        "requested_bytes": found.requested,
    }
    return {name: _four(count) for name, count in counts.items()}


def reset_peaks() -> None:
    """Let the peaks start again from the current values."""
    for count in _all_counts():
        count.peak = count.current


def reset_accumulated() -> None:
    """Let the sums of all that was added and taken away start again from nothing."""
    for count in _all_counts():
        count.gained = count.lost = 0


def _all_counts() -> list[Count]:
    allocator = DEVICE.allocator
    return [count for found in (allocator.statistics, *allocator.statistics_of.values()) for count in found.counts()]


def snapshot(asked: Any = None) -> dict[str, Any]:
    """What `torch._C._cuda_memorySnapshot` gives: the segments with their blocks, of one pool where its id is asked for, and no history."""
    _note_kept_pools()
    pool = tuple(asked[:2]) if asked else DEFAULT_POOL  # The default pool's id asks for all.
    segments: list[dict[str, Any]] = []
    free = {block.address: block for block in DEVICE.allocator.blocks()}
    pending = {block.address for block in DEVICE.pending}
    every = sorted([*free.values(), *DEVICE.pending, *DEVICE.blocks.values()], key=lambda block: block.address)
    for start, size in sorted(DEVICE.allocator.segments.items()):
        own = [block for block in every if start <= block.address < start + size]
        if pool != DEFAULT_POOL and not (own and own[0].pool.id == pool):
            continue
        segments.append({
            "device": 0,
            "address": start,
            "total_size": size,
            "allocated_size": sum(block.size for block in own if block.allocated and block.address not in pending),
            "active_size": sum(block.size for block in own if block.allocated),
            "requested_size": sum(block.requested for block in own),
            "stream": own[0].stream if own else 0,
            "segment_type": "small" if own and own[0].small else "large",
            "segment_pool_id": own[0].pool.id if own else (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": "active_pending_free" if block.address in pending else "active_allocated" if block.allocated else "inactive",
                    "frames": [],
                }
                for block in own
            ],
        })  # fmt: skip
    return {"segments": segments, "device_traces": [], "allocator_settings": {}, "external_annotations": []}


def host_memory_stats() -> dict[str, Any]:
    """What `torch._C._cuda_hostMemoryStats` gives: pinned blocks that there are, and those in use, in number and in bytes. No times."""
    tree: dict[str, Any] = {
        "allocations": _four(PINNED.owned),
        "allocated_bytes": _four(PINNED.owned_bytes),
        "active_requests": _four(PINNED.active),
        "active_bytes": _four(PINNED.active_bytes),
    }
    return tree | {"num_host_alloc": PINNED.owned.gained, "num_host_free": PINNED.owned.lost}


def _note_kept_pools() -> None:
    """Counts rest on a written rule where they hold memory of a lost capture."""
    if any(pool.kept for pool in DEVICE.allocator.pools.values()):
        rules.use("failed-capture-keeps-pool")


def _four(count: Count) -> dict[str, int]:
    return {"current": count.current, "peak": count.peak, "allocated": count.gained, "freed": count.lost}
