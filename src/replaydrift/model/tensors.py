"""What Python sees of a tensor: its device, and the conversions whose C++ would believe that it lies on the CPU.

Each function replaces one of torch's and falls back to it for every tensor that is not the model's.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from replaydrift.model import copies
from replaydrift.model.arena import BASE, DEVICE_END, is_pinned, on_device
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE
from replaydrift.model.forms import form_of, form_of_copy
from replaydrift.model.lacking import only_device
from replaydrift.model.pinned import PINNED

CUDA: Final = torch.device("cuda", 0)
_CPU: Final = torch.device("cpu")
_Base: Any = torch._C.TensorBase
_original: dict[str, Any] = {}


def install() -> None:
    """Put the replacements in place."""
    for name in (
        "to",
        "cuda",
        "cpu",
        "numpy",
        "tolist",
        "is_pinned",
        "pin_memory",
        "record_stream",
        "type",
        "new_tensor",
        "__array__",
        "__dlpack__",
    ):
        _original[name] = getattr(torch.Tensor, name)
    tensor: Any = torch.Tensor
    tensor.device = property(lambda self: CUDA if on_device(self) else _Base.device.__get__(self))
    tensor.is_cuda = property(lambda self: on_device(self) or _Base.is_cuda.__get__(self))
    tensor.is_cpu = property(lambda self: _Base.is_cpu.__get__(self) and not on_device(self))
    tensor.get_device = lambda self: 0 if on_device(self) else _Base.get_device(self)
    tensor.to, tensor.cuda, tensor.cpu, tensor.type = to, _cuda, _cpu, _type
    tensor.numpy, tensor.tolist = _numpy, _tolist
    tensor.is_pinned, tensor.pin_memory, tensor.record_stream = _is_pinned, pin_memory, _record_stream
    _patch_storage()


def wanted_device(value: Any) -> torch.device | None:
    """The device that an argument names; None for anything that names none, RuntimeError for a GPU the model has not."""
    if isinstance(value, torch.device):
        device = value
    elif isinstance(value, str):
        device = torch.device(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        device = torch.device("cuda", value)
    else:
        return None
    if device.type == "cuda":
        only_device(device)
    return device


class _Move(torch.autograd.Function):
    """A copy to the other side, whose gradient goes back."""

    @staticmethod
    def forward(ctx: Any, source: torch.Tensor, to_cuda: bool, non_blocking: bool) -> torch.Tensor:
        ctx.came_from_cuda = on_device(source)
        if to_cuda:
            return copies.to_device(source, non_blocking=non_blocking)
        form = form_of_copy(source)
        return copies.into_host(torch.empty_strided(form.size, form.stride, dtype=form.dtype), source, non_blocking=non_blocking)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        return move(gradient, CUDA if ctx.came_from_cuda else _CPU), None, None


def move(tensor: torch.Tensor, device: torch.device, *, non_blocking: bool = False) -> torch.Tensor:
    """The tensor on that side: itself where it is there already, else a copy that autograd knows of."""
    if on_device(tensor) == (device.type == "cuda"):
        return tensor
    with torch._C._DisableTorchDispatch():
        moved: torch.Tensor = _Move.apply(tensor, device.type == "cuda", non_blocking)  # type: ignore[no-untyped-call]
    return moved


def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Tensor.to, in all its forms."""
    device, rest = None, list(args)
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
        device, rest = other.device, [other.dtype, *rest]
    elif rest and not isinstance(rest[0], torch.dtype):
        device = wanted_device(rest.pop(0))
    given, kwargs = kwargs, dict(kwargs)
    if "other" in kwargs:
        other = kwargs.pop("other")
        device, kwargs["dtype"] = other.device, other.dtype
    if "device" in kwargs:
        device = wanted_device(kwargs.pop("device"))
    if device is None or device.type not in ("cpu", "cuda"):
        return _original["to"](self, *args, **given)
    flags = [value for value in rest if isinstance(value, bool)]
    dtype = kwargs.get("dtype", next((value for value in rest if isinstance(value, torch.dtype)), None))
    non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
    copy = kwargs.get("copy", flags[1] if len(flags) > 1 else False)
    memory_format = kwargs.get("memory_format")
    crosses = on_device(self) != (device.type == "cuda")
    result = self
    if crosses and not on_device(self) and dtype is not None and dtype != self.dtype and not non_blocking:
        result = _original["to"](result, dtype)  # torch converts on the side of the source; without waiting, on the device.
    if crosses:
        result = move(result, device, non_blocking=non_blocking)
    if dtype is not None and dtype != result.dtype:
        result = _original["to"](result, dtype)
    elif copy and not crosses:
        result = result.clone()
    return result if memory_format is None else result.contiguous(memory_format=memory_format)


def _cuda(self: torch.Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    wanted_device(device)
    return to(self, CUDA, non_blocking=non_blocking)


def _cpu(self: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    return to(self, _CPU)


def _type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    if dtype is None:
        name = _original["type"](self)
        return name.replace("torch.", "torch.cuda.", 1) if on_device(self) else name
    if isinstance(dtype, torch.dtype):
        return to(self, dtype=dtype, non_blocking=non_blocking)
    name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
    side = CUDA if name.startswith("torch.cuda.") else _CPU
    plain = getattr(torch, name.rsplit(".", 1)[1])
    return to(self, side, dtype=plain.dtype, non_blocking=non_blocking)


def _numpy(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    if on_device(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if DEVICE.observer is not None:
        DEVICE.observer.host_reads("numpy", self)
    return _original["numpy"](self, *args, **kwargs)


def _tolist(self: torch.Tensor) -> Any:
    if on_device(self):
        return _original["tolist"](move(self.detach(), _CPU))
    if DEVICE.observer is not None:
        DEVICE.observer.host_reads("tolist", self)
    return _original["tolist"](self)


def _is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    return is_pinned(self)


def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """Tensor.pin_memory: itself where it is pinned, else a copy that is."""
    if on_device(self):
        raise RuntimeError(f"cannot pin '{_type(self)}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    form = form_of(self.contiguous())
    with torch._C._DisableTorchDispatch(), torch.no_grad():
        return PINNED.new_tensor(form.dtype, form.size, form.stride, form.nbytes).copy_(self)


def _record_stream(self: torch.Tensor, stream: Any) -> None:
    block = DEVICE.block_of(self)
    if block is not None and block.stream != stream.stream_id:
        block.uses[stream.stream_id] = CLOCK.now


def _patch_storage() -> None:
    base = torch._C.StorageBase
    plain = base.device if hasattr(base, "device") else None

    def device(self: Any) -> Any:
        if BASE <= self.data_ptr() < DEVICE_END:
            return CUDA
        return plain.__get__(self) if plain is not None else _CPU

    untyped: Any = torch.UntypedStorage
    make = untyped.__new__

    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        place = None if device is None else wanted_device(device)
        if place is None or place.type != "cuda":
            return make(cls, *args, **({} if device is None else {"device": device}), **kwargs)
        (size,) = args or (0,)
        return DEVICE.new_tensor(torch.uint8, (size,), (1,), size).untyped_storage()

    untyped.__new__ = new
    untyped.__init__ = lambda self, *args, **kwargs: None
    untyped.device = property(device)
    untyped.is_cuda = property(lambda self: device(self).type == "cuda")
