"""Copies between host and device: who waits for whom, and which of them a capture refuses."""

from __future__ import annotations

from typing import Any

import torch

from replaydrift.model import rules, waiting
from replaydrift.model.arena import alias, is_pinned
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.forms import extent, form_of, form_of_copy
from replaydrift.model.pinned import PINNED
from replaydrift.model.submission import submit


def to_device(source: torch.Tensor, *, non_blocking: bool, original: torch.Tensor | None = None) -> torch.Tensor:
    """A fresh device tensor with the source's values; `original` is the tensor whose memory the copy really reads."""
    if original is not None and is_pinned(original) and original.dtype == source.dtype:
        source = original
    if not is_pinned(source):
        _refuse_pageable()
    form = form_of_copy(source)
    return into_device(DEVICE.new_tensor(form.dtype, form.size, form.stride, form.nbytes), source, non_blocking=non_blocking)


def into_device(target: torch.Tensor, source: torch.Tensor, *, non_blocking: bool) -> torch.Tensor:
    """The target, which the copy fills when its stream gets there.

    From pinned memory the copy reads the host's bytes when it runs; from pageable memory CUDA stages them at the call, and
    the host waits. Without `non_blocking` the host waits in any case.
    """
    pinned = _reads_in_place(source, target)
    if not pinned:
        _refuse_pageable()
    frozen = alias(source) if pinned else source.clone()
    into = alias(target)

    def work() -> None:
        into.copy_(frozen)

    end = submit("aten::copy_", work, _duration(source), reads=[source] if pinned else [], writes=[target])
    if pinned and non_blocking:
        PINNED.used(source)
    else:
        _wait(end)
    return target


def to_host(source: torch.Tensor, options: dict[str, Any], func: Any, *, non_blocking: bool) -> torch.Tensor:
    """A fresh CPU tensor with the source's values; it is pageable, so the host waits unless it said not to."""
    form = form_of(func(torch.empty_strided(source.shape, source.stride(), dtype=source.dtype), **options))
    target = torch.empty_strided(form.size, form.stride, dtype=form.dtype)
    return into_host(target, source, non_blocking=non_blocking)


def into_host(target: torch.Tensor, source: torch.Tensor, *, non_blocking: bool) -> torch.Tensor:
    """The target, which the copy fills at its end. Until then the host sees what was there."""
    pinned = _reads_in_place(target, source)
    if not pinned:
        _refuse_pageable()
    if DEVICE.capture is not None and not non_blocking:
        _wait(0.0)
    frozen = alias(source)
    into = alias(target) if pinned else target

    def work() -> None:
        into.copy_(frozen)

    end = submit("aten::copy_", work, _duration(source), reads=[source], writes=[target], at_end=True)
    if not non_blocking:
        _wait(end)
    elif pinned:
        PINNED.used(target)
    return target


def _wait(end: float) -> None:
    """Wait for the copy, as one does without `non_blocking=True`; a capture cannot hold that."""
    if DEVICE.capture is not None:
        DEVICE.refuse([DEVICE.capture], "a copy without non_blocking=True")
    waiting.wait_until(end, DEVICE.stream)


def _duration(tensor: torch.Tensor) -> float:
    return COSTS.of_bytes(tensor.numel() * tensor.element_size())


def _reads_in_place(host: torch.Tensor, other: torch.Tensor) -> bool:
    """True where the copy touches the host tensor's own memory, pinned; any other layout goes through a copy in pageable memory."""
    if not is_pinned(host):
        return False
    alike = host.stride() == other.stride() and extent(tuple(host.size()), host.stride()) == host.numel()
    return host.numel() == other.numel() and (alike or (host.is_contiguous() and other.is_contiguous()))


def _refuse_pageable() -> None:
    """Raise as torch does where a captured copy would touch pageable memory. The capture itself stays valid."""
    if DEVICE.capture is not None:
        if DEVICE.observer is not None:
            DEVICE.observer.refused("pageable-in-capture", "copy_")
        raise RuntimeError(rules.text("pageable-refused"))

