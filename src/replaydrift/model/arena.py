"""Memory with addresses that mean something: one anonymous mapping, a device part and a pinned part.

A tensor is on the device if and only if its data pointer lies in the device part. Its storage holds a slice of the mapping,
and a weak reference to that slice says when the last view of the storage is gone: the lifetime rule of a real CUDA tensor.
Pages that nobody touched cost nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Callable
from typing import Any, Final

import torch

DEVICE_BYTES: Final = 16 << 30
PINNED_BYTES: Final = 1 << 30
# The first page belongs to tensors without elements, which own no block.
EMPTY_BYTES: Final = 2 << 20

_mapping = mmap.mmap(
    -1, EMPTY_BYTES + DEVICE_BYTES + PINNED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
)
_whole = memoryview(_mapping)
_bytes = torch.frombuffer(_whole, dtype=torch.uint8)
BASE: Final = _bytes.data_ptr()
DEVICE_START: Final = BASE + EMPTY_BYTES
DEVICE_END: Final = DEVICE_START + DEVICE_BYTES
PINNED_END: Final = DEVICE_END + PINNED_BYTES
# A finaliser must not die before what it watches.
_watchers: dict[int, weakref.ref[memoryview]] = {}


def pointer(tensor: torch.Tensor) -> int:
    """The tensor's address, that of its storage where it has no elements; 0 for tensors that have none (meta, wrappers)."""
    try:
        return tensor.data_ptr() or tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def on_device(tensor: torch.Tensor) -> bool:
    """True for a CUDA tensor of the model."""
    try:
        return BASE <= (tensor.data_ptr() or tensor.untyped_storage().data_ptr()) < DEVICE_END
    except (RuntimeError, NotImplementedError):
        return False


def is_pinned(tensor: torch.Tensor) -> bool:
    """True for a tensor in the model's pinned memory."""
    return DEVICE_END <= pointer(tensor) < PINNED_END


def storage_at(address: int, size: int, on_free: Callable[[], Any]) -> torch.Tensor:
    """Bytes that own the range: `on_free` is called when the last tensor on them has gone."""
    offset = address - BASE
    piece = _whole[offset : offset + max(size, 1)]
    key = id(piece)

    def gone(_reference: object) -> None:
        _watchers.pop(key, None)
        on_free()

    _watchers[key] = weakref.ref(piece, gone)
    return torch.frombuffer(piece, dtype=torch.uint8)


def empty_storage() -> torch.Tensor:
    """Bytes for a tensor without elements: on the device, owning nothing."""
    return torch.frombuffer(_whole[:16], dtype=torch.uint8)


def strided(storage: torch.Tensor, dtype: torch.dtype, size: Any, stride: Any) -> torch.Tensor:
    """A tensor of this form at the start of the bytes."""
    whole = storage.numel() // dtype.itemsize * dtype.itemsize
    return torch.as_strided(storage[:whole].view(dtype), size, stride)


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same form at the same address that keeps no block alive: a frozen pointer.

    Its storage is no more than the tensor spans: some operators copy a whole storage.
    """
    size, stride, dtype = tensor.size(), tensor.stride(), tensor.dtype
    address = pointer(tensor)
    assert not address % dtype.itemsize, "a tensor that is not aligned to its own elements"
    count = 1
    for length, step in zip(size, stride, strict=True):
        count += (length - 1) * step
    frozen = torch.frombuffer(_whole, dtype=dtype, count=count if tensor.numel() else 1, offset=address - BASE)
    if len(size) != 1 or stride[0] != 1 or not size[0]:
        frozen = torch.as_strided(frozen, size, stride)
    if tensor.is_conj():
        frozen = torch._conj(frozen)
    return torch._neg_view(frozen) if tensor.is_neg() else frozen


def zero(address: int, size: int) -> None:
    """Make the range read as fresh memory, and give its pages back to the system."""
    ctypes.memset(address, 0, size) if size < mmap.PAGESIZE else _mapping.madvise(mmap.MADV_DONTNEED, address - BASE, size)
