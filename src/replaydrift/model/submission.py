"""Where work goes: into the graph of the capture that records its stream, else into the stream's queue."""

from __future__ import annotations

from collections.abc import Callable

import torch

from replaydrift.model.captures import Node
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import CAPTURE_INVALIDATED, cuda_error


def submit(
    name: str, work: Callable[[], None], microseconds: float, *, reads: list[torch.Tensor], writes: list[torch.Tensor], at_end: bool = False,
) -> float:  # fmt: skip
    """Record the work where the current stream is captured, else queue it; returns when it ends (0 for recorded work)."""
    stream, capture = DEVICE.stream, DEVICE.capture
    operation = DEVICE.observer.submitted(name, stream, capture, reads, writes) if DEVICE.observer is not None else None
    if capture is not None:
        if capture.invalid:  # By another thread, or by an error that was caught.
            raise cuda_error(CAPTURE_INVALIDATED)
        capture.add(stream, Node(work, microseconds, (), name, at_end, operation=operation))
        return 0.0
    end = CLOCK.submit(stream, microseconds, work, at_end=at_end)
    CLOCK.pump()
    return end
