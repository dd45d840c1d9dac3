"""Kernels that CUDA loads when they are first launched: that launch waits until the device has nothing left to do.

CUDA loads lazily since 11.7 and says that loading may synchronise. So what a process does first, and only that, is ordered where nothing
orders it later: the first value of a race escapes. Within a capture nothing is launched, and loading waits for nothing.
"""

from __future__ import annotations

from typing import Final

from replaydrift.model import rules
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE

# Copies of memory and nothing else, in the cases at hand: no kernel.
_COPIES: Final = frozenset({"aten::clone", "aten::copy_"})
_ZEROS: Final = frozenset({"aten::zero_", "aten::zeros", "aten::zeros_like", "aten::new_zeros"})
_FILLS: Final = frozenset({"aten::fill_", "aten::ones", "aten::ones_like", "aten::new_ones", "aten::full", "aten::full_like", "aten::new_full"})
_loaded: set[str] = set()


def load(operator: str) -> None:
    """Load the operator's kernel before it is launched, once a process; where the device is busy the host waits for it."""
    kernel = _kernel_of(operator)
    if kernel is None or kernel in _loaded:
        return
    _loaded.add(kernel)
    if DEVICE.capture is None and CLOCK.busy and rules.use("first-launch-waits") is not None:
        CLOCK.drain()


def forget() -> None:
    """Unload everything, as in a new process."""
    _loaded.clear()


def _kernel_of(operator: str) -> str | None:
    """The kernel that the operator launches; None for one that needs none. Filling has one kernel for all that fill."""
    if operator in _ZEROS:
        return None if rules.holds("zeros-are-memory-sets") else "fill"
    if operator in _FILLS:
        return "fill"
    return None if operator in _COPIES else operator
