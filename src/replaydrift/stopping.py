"""Stopping on a signal: at once while nothing is at stake, at the next safe point while attempts are being kept."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Raised where a signal arrives before `Stop.quietly`; its text is the signal's name."""


class Stop:
    """While it is open, SIGINT, SIGTERM and SIGHUP stop the sweep. After `quietly()` they only set `signal`; a second one acts as ever."""

    def __init__(self) -> None:
        self.signal: str | None = None
        self._quiet = False
        self._before: dict[signal.Signals, Any] = {}

    def quietly(self) -> None:
        """From now on the code looks at `signal` itself."""
        self._quiet = True

    def __enter__(self) -> Stop:  # noqa: PYI034 - Self came with Python 3.11
        if threading.current_thread() is threading.main_thread():  # Elsewhere Python lets nobody set handlers.
            self._before = {number: signal.signal(number, self._take) for number in _SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._restore()

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.signal = signal.Signals(number).name
        self._restore()
        if not self._quiet:
            raise Stopped(self.signal)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
