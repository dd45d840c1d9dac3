"""The form of an operator's results, worked out without its inputs' values: shapes, strides, dtypes.

Small operators run once on zeros of the same form (zeros are valid indices), large ones on meta tensors. What came out is
remembered, since a graph's loop asks for the same forms again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from replaydrift.model.failures import lack

# Up to so many elements in all, running on zeros is cheaper than the first use of a meta kernel, which imports Python references.
SMALL: Final = 1 << 16


@dataclass(frozen=True)
class Form:
    """Dtype, size, stride and bytes of one result."""

    dtype: torch.dtype
    size: tuple[int, ...]
    stride: tuple[int, ...]
    nbytes: int


_REMEMBERED: dict[Any, Any] = {}


def form_of(tensor: torch.Tensor) -> Form:
    """The form of a tensor that exists; LackError for one that is more than numbers with strides."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise lack(f"{'quantized' if tensor.is_quantized else 'sparse'} tensors on the device ({tensor.layout}, {tensor.dtype})")
    if tensor.is_nested:
        raise lack("nested tensors on the device")
    size, stride = tuple(tensor.shape), tensor.stride()
    return Form(tensor.dtype, size, stride, extent(size, stride) * tensor.dtype.itemsize)


def form_of_copy(tensor: torch.Tensor) -> Form:
    """The form of a copy: elements in the same order, without the gaps and repeats that the strides of a view may have."""
    return form_of(tensor if tensor.is_contiguous() else torch.ops.aten.empty_like.default(tensor, device="meta"))


def extent(size: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """How many elements lie between the first and the last of this form, both included; 0 without elements."""
    if 0 in size:
        return 0
    return 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True))


def forms_of_results(func: Any, args: Any, kwargs: dict[str, Any], *, virtual: bool = False) -> Any:
    """What `func` returns, with a Form in the place of each tensor: one, or a list or tuple of them. `virtual` takes no memory."""
    try:
        exact = not tensors_in((args, kwargs))  # A factory's numbers may say how many elements: torch.arange(0.0, 3.5).
        key = (func, _key(args, exact), tuple((name, _key(value, exact)) for name, value in kwargs.items()))
        known = _REMEMBERED.get(key)
    except TypeError:
        key, known = None, None
    if known is not None:
        return known
    count = sum(tensor.numel() for tensor in tensors_in((args, kwargs)))
    device = "cpu" if count <= SMALL and not virtual else "meta"
    try:
        results = func(*_stand_ins(args, device), **_stand_ins(kwargs, device))
    except RuntimeError:
        if device == "meta":
            raise
        results = func(*_stand_ins(args, "meta"), **_stand_ins(kwargs, "meta"))  # Zeros are no valid values for it.
    forms = map_tensors(results, form_of)
    if key is not None:
        _REMEMBERED[key] = forms
    return forms


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """The tensors of nested lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[torch.Tensor]) -> None:
    if isinstance(tree, torch.Tensor):
        found.append(tree)
    elif isinstance(tree, list | tuple):
        for item in tree:
            _collect(item, found)
    elif isinstance(tree, dict):
        for item in tree.values():
            _collect(item, found)


def map_tensors(tree: Any, change: Any) -> Any:
    """The same nesting with `change(tensor)` in the place of each tensor."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, list):
        return [map_tensors(item, change) for item in tree]
    if isinstance(tree, tuple):
        return tuple(map_tensors(item, change) for item in tree)
    if isinstance(tree, dict):
        return {name: map_tensors(item, change) for name, item in tree.items()}
    return tree


def _key(tree: Any, exact: bool) -> Any:
    if isinstance(tree, torch.Tensor):
        return tree.dtype, tree.shape, tree.stride()
    if isinstance(tree, list | tuple):
        return tuple(_key(item, exact) for item in tree)
    if isinstance(tree, float) and not exact:
        return float  # No form depends on a number's value, and a schedule's numbers would fill the memory.
    hash(tree)
    return tree if not isinstance(tree, bool | int | float) else (type(tree), tree)


def _stand_ins(tree: Any, device: str) -> Any:
    def stand_in(tensor: torch.Tensor) -> torch.Tensor:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        return made if device == "meta" else made.zero_()

    if isinstance(tree, torch.device):
        return torch.device(device)
    if isinstance(tree, dict):
        return {
            name: torch.device(device) if name == "device" and value is not None else _stand_ins(value, device)
            for name, value in tree.items()
        }
    if isinstance(tree, torch.Tensor):
        return stand_in(tree)
    if isinstance(tree, list):
        return [_stand_ins(item, device) for item in tree]
    if isinstance(tree, tuple):
        return tuple(_stand_ins(item, device) for item in tree)
    return tree
