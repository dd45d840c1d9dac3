"""The host waits for the device, or is refused because a stream is captured: the one way in which either happens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from replaydrift.model import rules
from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE, Capture
from replaydrift.model.failures import STREAM_CAPTURE_UNSUPPORTED, cuda_error


def wait_until(time: float, stream: int) -> None:
    """Let the host wait until that time, which is when something on the stream is done."""
    CLOCK.catch_up(time)
    if DEVICE.observer is not None:
        DEVICE.observer.host_waited(stream)


def wait_for_stream(stream: int) -> None:
    """Let the host wait for all that the stream has been given so far."""
    wait_until(CLOCK.reached(stream), stream)


def refuse(captures: Iterable[Capture], what: str, error: tuple[int, str, str] = STREAM_CAPTURE_UNSUPPORTED) -> NoReturn:
    """Raise as CUDA does for a wait inside a capture; the captures are lost. `what` names the call for a person."""
    for capture in captures:
        capture.invalid = True
    rules.use("sync-in-capture")
    if DEVICE.observer is not None:
        DEVICE.observer.refused("sync-in-capture", what)
    raise cuda_error(error)
