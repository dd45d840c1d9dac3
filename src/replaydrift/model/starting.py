"""CUDA starts when it is first used: only then torch has a generator for the device."""

from __future__ import annotations

from typing import Any

import torch

from replaydrift.model import generators

_STARTED = False


def start() -> None:
    """Bring what torch's initialisation of CUDA brings. Called again, it does nothing."""
    global _STARTED  # noqa: PLW0603 - a process starts CUDA once
    if not _STARTED:
        _STARTED = True
        torch.cuda.default_generators = generators.default_generators()


def stop() -> None:
    """As in a process that has not used CUDA yet."""
    global _STARTED  # noqa: PLW0603 - see above
    _STARTED = False
    torch.cuda.default_generators = ()


def current_device() -> int:
    """The number of the one device; asking for it starts CUDA."""
    start()
    return 0


def once_started(call: Any, **_how: Any) -> None:
    """Do at once what torch would put off until CUDA is initialised, as seeding: nothing can come between."""
    start()
    call()
