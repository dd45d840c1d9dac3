"""Memory statistics in the form that `torch.cuda.memory_stats` reads: nested counts of the model's allocator."""

from __future__ import annotations

from typing import Any, Final

from replaydrift.model.device import DEVICE

_STATS: Final = ("allocation", "segment", "active", "inactive_split")
_BYTES: Final = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")


def memory_stats(_device: int = 0) -> dict[str, Any]:
    """What `torch._C._cuda_memoryStats` gives: for each count the current value and the peak."""
    found = DEVICE.allocator.statistics
    values = {
        "allocated_bytes": (found.allocated, found.peak_allocated),
        "active_bytes": (found.allocated, found.peak_allocated),
        "requested_bytes": (found.requested, found.peak_requested),
        "reserved_bytes": (found.reserved, found.peak_reserved),
        "inactive_split_bytes": (found.reserved - found.allocated, 0),
        "allocation": (len(DEVICE.blocks), len(DEVICE.blocks)),
        "active": (len(DEVICE.blocks), len(DEVICE.blocks)),
        "segment": (len(DEVICE.allocator.segments), len(DEVICE.allocator.segments)),
        "inactive_split": (sum(1 for _ in DEVICE.allocator.blocks()), 0),
    }
    tree: dict[str, Any] = {name: {"all": _counts(*values[name])} for name in (*_STATS, *_BYTES)}
    tree |= {"num_alloc_retries": 0, "num_ooms": 0, "num_sync_all_streams": 0, "max_split_size": -1}
    tree |= {"num_device_alloc": found.segments, "num_device_free": 0}
    tree["oversize_allocations"] = tree["oversize_segments"] = _counts(0, 0)
    return tree


def reset_peaks(_device: int = 0) -> None:
    """Let the peaks start again from the current values."""
    found = DEVICE.allocator.statistics
    found.peak_allocated, found.peak_requested, found.peak_reserved = found.allocated, found.requested, found.reserved


def snapshot(*_arguments: Any) -> dict[str, Any]:
    """What `torch._C._cuda_memorySnapshot` gives: the segments with their blocks, and no history."""
    segments: list[dict[str, Any]] = []
    free = {block.address: block for block in DEVICE.allocator.blocks()}
    every = sorted([*free.values(), *DEVICE.blocks.values()], key=lambda block: block.address)
    for start, size in sorted(DEVICE.allocator.segments.items()):
        own = [block for block in every if start <= block.address < start + size]
        segments.append({
            "device": 0,
            "address": start,
            "total_size": size,
            "allocated_size": sum(block.size for block in own if block.allocated),
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
                    "state": "active_allocated" if block.allocated else "inactive",
                    "frames": [],
                }
                for block in own
            ],
        })  # fmt: skip
    return {"segments": segments, "device_traces": [], "allocator_settings": {}, "external_annotations": []}


def _counts(current: int, peak: int) -> dict[str, int]:
    return {"current": current, "peak": peak, "allocated": current, "freed": 0}
