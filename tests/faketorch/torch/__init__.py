"""A torch of one screen, so that the whole harness is tested in seconds and without torch: a version, a tensor, a GPU on request."""

from __future__ import annotations

import os

from . import cuda, version

__version__ = os.environ.get("FAKE_TORCH_RELEASE", "2.99.0+fake")
__all__ = ["Tensor", "cuda", "tensor", "version"]


class Tensor:
    """Nested lists that answer what the harness asks of a tensor."""

    def __init__(self, values: object, device: str = "cpu") -> None:
        self._values = values
        self.device = type("device", (), {"type": device})()
        self.layout = "torch.strided"

    def numel(self) -> int:
        return _count(self._values)

    def detach(self) -> Tensor:
        return self

    def is_floating_point(self) -> bool:
        return False

    def tolist(self) -> object:
        return self._values

    def item(self) -> object:
        value = self._values
        while isinstance(value, list):
            value = value[0]
        return value


def tensor(values: object, device: str = "cpu") -> Tensor:
    return Tensor(values, device)


def _count(values: object) -> int:
    return sum(map(_count, values)) if isinstance(values, list) else 1
