"""Gradient accumulation in the engine: in place on a GPU, out of place while a dispatch mode is active.

The engine adds a second gradient into the buffer of the first when nobody else holds that buffer, but goes out of place where
"tensor subclass-like" tensors may be about, and any dispatch mode makes it think so. That is one block more, and addresses
are what many cases are about. So the call is recognised and run in place: a plain add of two tensors of one form, inside a
backward pass, with gradients off, whose first operand is held by exactly those who hold it in an accumulation. Those use
counts are measured at install, on a small backward pass that accumulates.
"""

from __future__ import annotations

from typing import Any

import torch

from replaydrift.model.operators import Operator


class _Counts:
    """How often an accumulation's buffer is held: the tensor by C++ and Python, its storage. None until measured."""

    measured: tuple[int, int] | None = None
    seen: list[tuple[int, int]] | None = None  # while measuring


def calibrate() -> bool:
    """Measure the use counts with a small backward pass; False where this torch cannot tell them, and the rule stays off."""
    if not hasattr(torch._C, "_storage_Use_Count") or not hasattr(torch._C, "_current_graph_task_id"):
        return False
    _Counts.measured, _Counts.seen = None, []
    x = torch.ones(3, device="cuda", requires_grad=True)
    (x**2 + x * 2).backward(torch.ones(3, device="cuda"))
    seen, _Counts.seen = _Counts.seen, None
    _Counts.measured = seen[0] if len(seen) == 1 else None
    return _Counts.measured is not None


def is_one(traits: Operator, args: Any, kwargs: dict[str, Any]) -> bool:
    """True where this operator is the engine adding into a buffer that it alone holds."""
    if traits.name != "aten::add" or kwargs or len(args) != 2 or torch._C._current_graph_task_id() == -1 or torch.is_grad_enabled():
        return False
    first, second = args
    if not (isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)):
        return False
    if first.shape != second.shape or first.dtype != second.dtype or not first.is_contiguous():
        return False
    counts = (_use_count(first), torch._C._storage_Use_Count(first.untyped_storage()._cdata))
    if _Counts.seen is not None:
        _Counts.seen.append(counts)
        return False
    return counts == _Counts.measured


def _use_count(tensor: torch.Tensor) -> int:
    return tensor._use_count() if hasattr(tensor, "_use_count") else 0
