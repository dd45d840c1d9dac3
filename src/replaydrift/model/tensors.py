"""What Python sees of a tensor: its device, and the conversions whose C++ would believe that it lies on the CPU.

Each function replaces one of torch's and falls back to it for every tensor that is not the model's.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors

from replaydrift.model import copies
from replaydrift.model.arena import BASE, DEVICE_END, is_pinned, on_device
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE
from replaydrift.model.dispatch import STATE
from replaydrift.model.forms import form_of, form_of_copy, tensors_in
from replaydrift.model.lacking import only_device
from replaydrift.model.pinned import PINNED

CUDA: Final = torch.device("cuda", 0)
_CPU: Final = torch.device("cpu")
_Base: Any = torch._C.TensorBase
_original: dict[str, Any] = {}


def install() -> None:
    """Put the replacements in place."""
    _device_constructors()  # Remembers torch's own factories, which a default device is then still asked about.
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
    tensor.to, tensor.cuda, tensor.cpu, tensor.type = _to, _cuda, _cpu, _type
    tensor.numpy, tensor.tolist = _numpy, _tolist
    tensor.is_pinned, tensor.pin_memory, tensor.record_stream = _is_pinned, _pin_memory, _record_stream
    for name in ("tensor", "as_tensor", "asarray"):
        _original[f"torch.{name}"] = getattr(torch, name)
        setattr(torch, name, _maker(name))
    tensor.new_tensor = _new_tensor
    for name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"):
        setattr(torch, name, _cpu_marked(getattr(torch, name)))
    for name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"):
        setattr(tensor, name, _cpu_marked(getattr(tensor, name)))
    for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye", "empty_strided"):
        setattr(torch, name, _with_device_by_number(getattr(torch, name)))
    torch._C._nn._parse_to = _parse_to(torch._C._nn._parse_to)
    for holder, names in _MAKE_THEIR_OWN:
        for name in names:
            setattr(holder, name, _inheriting(getattr(holder, name)))
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


def _to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
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
    return _to(self, CUDA, non_blocking=non_blocking)


def _cpu(self: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    return _to(self, _CPU)


def _type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    if dtype is None:
        name = _original["type"](self)
        return name.replace("torch.", "torch.cuda.", 1) if on_device(self) else name
    if isinstance(dtype, torch.dtype):
        return _to(self, dtype=dtype, non_blocking=non_blocking)
    name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
    side = CUDA if name.startswith("torch.cuda.") else _CPU
    plain = getattr(torch, name.rsplit(".", 1)[1])
    return _to(self, side, dtype=plain.dtype, non_blocking=non_blocking)


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


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
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


def _maker(name: str) -> Any:
    original = _original[f"torch.{name}"]

    def make(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        named = kwargs.pop("device", None)
        device = _default_device() if named is None else wanted_device(named)
        if device is not None and device.type not in ("cpu", "cuda"):
            return original(data, *args, device=device, **kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        pinned = kwargs.pop("pin_memory", False)
        if isinstance(data, torch.Tensor):
            made = data.detach().clone() if name == "tensor" else data
            made = _to(made, device or data.device, **({"dtype": kwargs["dtype"]} if kwargs.get("dtype") else {}))
        else:
            # Read elements that are device tensors as C++ would, one wait each.
            made = original(_plain(data), *args, device=_CPU, **kwargs)
            if pinned:
                made = _pin_memory(made)
            if device is not None and device.type == "cuda":
                made = _to(made, device)
        return made.requires_grad_() if requires_grad else made

    make.__name__, make.__doc__ = name, original.__doc__
    return make


def _default_device() -> torch.device | None:
    """The device that `set_default_device` or a `with torch.device(...)` block asks for. A block is a mode like the setting."""
    modes = _get_current_function_mode_stack()
    return next((mode.device for mode in reversed(modes) if isinstance(mode, DeviceContext)), None) if modes else None


def _plain(data: Any) -> Any:
    if isinstance(data, torch.Tensor):
        return data.tolist() if on_device(data) else data
    if isinstance(data, list | tuple) and any(isinstance(item, torch.Tensor | list | tuple) for item in data):
        return type(data)(_plain(item) for item in data) if not hasattr(data, "_fields") else data
    return data


def _new_tensor(self: torch.Tensor, data: Any, **kwargs: Any) -> torch.Tensor:
    kwargs.setdefault("device", self.device)
    kwargs.setdefault("dtype", self.dtype)
    return torch.tensor(data, **kwargs)


def _cpu_marked(original: Any) -> Any:
    """The same factory, which says when `device="cpu"` was written out: below, that looks like an inherited device."""

    def make(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "cpu":
            return original(*args, **kwargs)
        STATE.asked_for_cpu = True
        try:
            return original(*args, **kwargs)
        finally:
            STATE.asked_for_cpu = False

    make.__name__, make.__doc__ = original.__name__, original.__doc__
    return make


def _with_device_by_number(original: Any) -> Any:
    """The same factory, which takes `device=0` as a build does that has GPUs."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = wanted_device(kwargs["device"])
        return original(*args, **kwargs)

    make.__name__, make.__doc__ = original.__name__, original.__doc__
    return make


def _parse_to(original: Any) -> Any:
    """What reads the arguments of `Module.to`, with a number taken for a device."""

    def parse(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            args = (wanted_device(args[0]), *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = wanted_device(kwargs["device"])
        return original(*args, **kwargs)

    return parse


def _inheriting(original: Any) -> Any:
    """The same function, which says that tensors it makes within go where its arguments lie: C++ believes those on the CPU."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if STATE.makes_on_device or not any(on_device(tensor) for tensor in tensors_in((args, kwargs))):
            return original(*args, **kwargs)
        STATE.makes_on_device = True
        try:
            return original(*args, **kwargs)
        finally:
            STATE.makes_on_device = False

    call.__name__, call.__doc__ = original.__name__, original.__doc__
    return call


# Functions of C++ that make a tensor on the device of their arguments: of a number, a range, a mask.
_MAKE_THEIR_OWN: Final = (
    (torch, ("where", "combinations", "corrcoef", "cov", "quantile", "nanquantile", "cosine_similarity", "logdet", "pinverse")),
    (torch.Tensor, ("where", "corrcoef", "cov", "quantile", "nanquantile", "logdet", "pinverse")),
    (torch.linalg, ("matrix_power", "matrix_rank", "pinv")),
    (torch.nn.functional, ("scaled_dot_product_attention", "cosine_similarity")),
)


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
