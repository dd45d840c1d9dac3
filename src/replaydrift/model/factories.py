"""Functions of torch that make tensors, from data or from nothing: where what they make lies, which C++ would take for the CPU."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors

from replaydrift.model.arena import on_device
from replaydrift.model.dispatch import STATE
from replaydrift.model.forms import tensors_in
from replaydrift.model.tensors import pin_memory, to, wanted_device

_CPU: Final = torch.device("cpu")


def install() -> None:
    """Put the replacements in place."""
    _device_constructors()  # Remembers torch's own factories, which a default device is then still asked about.
    tensor: Any = torch.Tensor
    for name in ("tensor", "as_tensor", "asarray"):
        setattr(torch, name, _maker(getattr(torch, name)))
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


def _maker(original: Any) -> Any:
    name = original.__name__

    def make(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        named = kwargs.pop("device", None)
        device = _default_device() if named is None else wanted_device(named)
        if device is not None and device.type not in ("cpu", "cuda"):
            return original(data, *args, device=device, **kwargs)
        requires_grad = kwargs.pop("requires_grad", False)
        pinned = kwargs.pop("pin_memory", False)
        if isinstance(data, torch.Tensor):
            made = data.detach().clone() if name == "tensor" else data
            made = to(made, device or data.device, **({"dtype": kwargs["dtype"]} if kwargs.get("dtype") else {}))
        else:
            # Read elements that are device tensors as C++ would, one wait each.
            made = original(_plain(data), *args, device=_CPU, **kwargs)
            if pinned:
                made = pin_memory(made)
            if device is not None and device.type == "cuda":
                made = to(made, device)
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
