"""The host waits for the device: the one way in which it does."""

from __future__ import annotations

from replaydrift.model.clock import CLOCK
from replaydrift.model.device import DEVICE


def wait_until(time: float, stream: int) -> None:
    """Let the host wait until that time, which is when something on the stream is done."""
    CLOCK.catch_up(time)
    if DEVICE.observer is not None:
        DEVICE.observer.host_waited(stream)


def wait_for_stream(stream: int) -> None:
    """Let the host wait for all that the stream has been given so far."""
    wait_until(CLOCK.reached(stream), stream)
