"""Operators with a way of their own through the model: copies, indices, memory without a kernel, other sizes in place."""

from __future__ import annotations

from typing import Any, Final

import torch

from replaydrift.model import copies
from replaydrift.model.arena import on_device
from replaydrift.model.device import DEVICE
from replaydrift.model.dispatch import SPECIAL, STATE, on_device_run, on_host, works_on_device
from replaydrift.model.forms import forms_of_results, tensors_in
from replaydrift.model.kernels import execute, new_results
from replaydrift.model.operators import Operator, operator

aten: Final = torch.ops.aten
_CPU: Final = torch.device("cpu")


def _index(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Indexing: indices that lie on the CPU are copied over first, a pageable copy."""
    if not on_device(args[0]):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return func(*args, **kwargs)
    indices = [
        copies.to_device(index, non_blocking=False) if isinstance(index, torch.Tensor) and not on_device(index) else index
        for index in args[1]
    ]
    args = (args[0], indices, *args[2:])
    return on_device_run(func, args, kwargs, traits, tensors_in(args))


def _where(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """`torch.where`: a tensor of the CPU without dimensions is copied over first, a pageable copy."""
    tensors = tensors_in(args)
    if not any(on_device(tensor) for tensor in tensors):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return func(*args, **kwargs)
    args = tuple(
        copies.to_device(value, non_blocking=False) if isinstance(value, torch.Tensor) and not value.dim() and not on_device(value) else value
        for value in args
    )
    return on_device_run(func, args, kwargs, traits, tensors_in(args))


def _empty(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Memory without a kernel: a block, holding what lay there."""
    tensors = tensors_in(args)
    if not works_on_device(tensors, kwargs, traits):
        return on_host(func, args, kwargs)
    plain = {**kwargs, "device": _CPU, "pin_memory": False} if traits.has_device else kwargs
    return new_results(forms_of_results(func, args, plain, virtual=True))


def _resize(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Other sizes in place: where the storage is too small the tensor gets a block of its own, with the old elements copied over."""
    tensor, size = args[0], tuple(args[1])
    if not on_device(tensor):
        return func(*args, **kwargs)
    form = forms_of_results(aten.empty.memory_format, (size,), {"dtype": tensor.dtype, "device": _CPU, **kwargs}, virtual=True)
    if form.nbytes + tensor.storage_offset() * tensor.element_size() <= tensor.untyped_storage().nbytes():
        return func(*args, **kwargs)
    grown = DEVICE.new_tensor(form.dtype, form.size, form.stride, form.nbytes)
    if tensor.numel():
        kept = torch.as_strided(grown, tensor.size(), tensor.stride())
        execute(aten.copy_.default, (kept, tensor), {}, operator(aten.copy_.default))
    return tensor.set_(grown)


def _copy(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    target, source = args[0], args[1]
    non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
    if on_device(target) and on_device(source):
        return execute(func, args, kwargs, traits)
    if on_device(target):
        return copies.into_device(target, source, non_blocking=non_blocking)
    if on_device(source):
        return copies.into_host(target, source, non_blocking=non_blocking)
    if DEVICE.observer is not None:
        DEVICE.observer.host_ran(args, kwargs, traits)
    return func(*args, **kwargs)


def _to_copy(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    source, asked = args[0], kwargs.get("device")
    here = on_device(source)
    there = here if asked is None or (asked.type == "cpu" and here and not STATE.asked_for_cpu) else asked.type == "cuda"
    rest = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory", "non_blocking")}
    if here and there:
        return execute(func, args, rest, traits)
    if not here and not there:
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return on_host(func, args, kwargs)
    non_blocking = kwargs.get("non_blocking", False)
    if there:
        return copies.to_device(func(source, **rest), non_blocking=non_blocking, original=source)
    return copies.to_host(source, rest, func, non_blocking=non_blocking)


def install() -> None:
    """Let these operators go their own way."""
    SPECIAL.update({
        "aten::copy_": _copy,
        "aten::resize_": _resize,
        "aten::_to_copy": _to_copy,
        "aten::empty": _empty,
        "aten::empty_strided": _empty,
        "aten::empty_like": _empty,
        "aten::new_empty": _empty,
        "aten::new_empty_strided": _empty,
        "aten::where": _where,
        "aten::index": _index,
        "aten::index_put": _index,
        "aten::index_put_": _index,
        "aten::_index_put_impl_": _index,
    })  # fmt: skip
