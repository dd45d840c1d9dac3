"""What torch has and the model has not: refused where it is asked for, by its name."""

from __future__ import annotations

from typing import Any, Final

import torch

from replaydrift.model.arena import on_device
from replaydrift.model.failures import LackError, lack

# What torch.nn.DataParallel and torch.cuda.comm ask of the C layer, by what is done.
_BETWEEN_DEVICES: Final = ("_broadcast", "_broadcast_out", "_broadcast_coalesced", "_scatter", "_scatter_out", "_gather", "_gather_out")


def only_device(device: Any) -> None:
    """Accept the one device in any form that torch takes; LackError for another one."""
    index = device if isinstance(device, int) else None if device is None else torch.device(device).index
    if index not in (None, 0, -1):
        raise lack(f"device cuda:{index}: it has one GPU, cuda:0")


class _LackedNameError(LackError, AttributeError):
    """The same for a name: `hasattr` stays False, and a use says what is lacking."""


class Missing:
    """Stands for a function of torch._C that the model has not; calling it says so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_arguments: Any, **_more: Any) -> Any:
        """Refuse."""
        raise lack(f"torch._C.{self._name}")


def unknown_name(name: str) -> Any:
    """What `torch._C.<name>` gives for a name that neither torch nor the model has."""
    if name.startswith(("_cuda_", "_cudnn_", "_nccl_")):
        raise _LackedNameError(str(lack(f"torch._C.{name}")))
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


def install() -> None:
    """Refuse compilation, export and work between several GPUs."""
    torch.compile = _refuse_compile
    for name in _BETWEEN_DEVICES:
        setattr(torch._C, name, _refuse_between_devices)
    from torch._subclasses.fake_tensor import FakeTensorMode

    plain: Any = FakeTensorMode.from_tensor

    def from_tensor(self: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        """A fake of a host's tensor. C++ would end the process where it meets a device that this build has not."""
        if on_device(tensor):
            raise lack("fake tensors of the device, and so torch.export and torch.compile")
        return plain(self, tensor, *args, **kwargs)

    FakeTensorMode.from_tensor = from_tensor  # type: ignore[method-assign]


def _refuse_compile(*_arguments: Any, **_more: Any) -> Any:
    raise lack("torch.compile: it makes kernels for a real GPU")


def _refuse_between_devices(*_arguments: Any, **_more: Any) -> Any:
    raise lack("copies between GPUs (torch.nn.DataParallel, torch.cuda.comm): it has one GPU, cuda:0")
