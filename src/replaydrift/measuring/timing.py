"""Times of work on a GPU: events around many repeats, and the host's clock around a call. Several works are measured in turn.

Both are made of an event, a wait and a clock, so that tests can put others in their place.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, TypeVar

Key = TypeVar("Key", bound=Hashable)
Work = Callable[[], object]

# Events and the first launch of a batch may take up to a hundredth of what is measured.
_OVERHEAD_SHARE: Final = 0.01
_SHORTEST_SPAN_US: Final = 2000.0
# Few enough that the queue of launches never fills up: then a call would wait for the GPU.
_MOST_CALLS: Final = 20
_BACKLOG_US: Final = 1000.0
_MOST_REPEATS: Final = 100_000
LEAST_SAMPLES: Final = 5
MOST_SAMPLES: Final = 15


@dataclass(frozen=True)
class Instruments:
    """What is measured with: a new timing event, a wait for all of the GPU's work, the host's clock in nanoseconds."""

    event: Callable[[], Any]
    wait: Callable[[], None]
    clock_ns: Callable[[], int] = time.perf_counter_ns

    @classmethod
    def of_torch(cls) -> Instruments:
        """Those of `torch.cuda`."""
        import torch

        return cls(lambda: torch.cuda.Event(enable_timing=True), torch.cuda.synchronize)


class Stopwatch:
    """Measures work on the current stream, in microseconds a repeat."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self.overhead_us = median(self.gpu_span_us(_nothing, 1) for _ in range(11))

    def gpu_span_us(self, work: Work, repeats: int, lead: Work | None = None) -> float:
        """The time between two events around so many repeats, behind a `lead` that keeps the GPU busy while the first is launched."""
        begin, end = self._instruments.event(), self._instruments.event()
        self._instruments.wait()
        if lead is not None:
            lead()
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        self._instruments.wait()
        return float(begin.elapsed_time(end)) * 1000

    def repeats_for(self, work: Work) -> int:
        """How many repeats make a span of which what the timer adds is less than a hundredth."""
        target, repeats = max(_SHORTEST_SPAN_US, self.overhead_us / _OVERHEAD_SHARE), 1
        while (span := self.gpu_span_us(work, repeats)) < target and repeats < _MOST_REPEATS:
            wanted = repeats * target / span if span > 0 else math.inf
            repeats = int(min(max(1.1 * wanted + 1, 2 * repeats), 50 * repeats, _MOST_REPEATS))
        return repeats

    def gpu_us(self, work: Work, *, lead: bool = True) -> Callable[[], float]:
        """A measure: one sample of the GPU's time of a repeat, where the host is slower the host's pace. The work runs here already.

        Without `lead`, for work that is long and whose first kernel is soon launched, the GPU waits for that launch once a sample.
        """
        repeats, ahead = self.repeats_for(work), work if lead else None
        return lambda: self.gpu_span_us(work, repeats, ahead) / repeats

    def host_us(self, work: Work) -> Callable[[], float]:
        """A measure: one sample of the host's time of a call that only queues work. The work runs here already."""
        calls = self._calls_for(work)
        return lambda: self._host_span_ns(work, calls) / calls / 1000

    def _calls_for(self, work: Work) -> int:
        span = self.gpu_span_us(work, 1)
        return int(min(max(_BACKLOG_US / span, 1), _MOST_CALLS)) if span > 0 else _MOST_CALLS

    def _host_span_ns(self, work: Work, calls: int) -> int:
        self._instruments.wait()
        begin = self._instruments.clock_ns()
        for _ in range(calls):
            work()
        end = self._instruments.clock_ns()
        self._instruments.wait()
        return end - begin

    def until_done_us(self, work: Work) -> float:
        """The host's time from an idle GPU before the work to an idle GPU after it, once."""
        self._instruments.wait()
        begin = self._instruments.clock_ns()
        work()
        self._instruments.wait()
        return (self._instruments.clock_ns() - begin) / 1000


def in_turn(
    measures: Mapping[Key, Callable[[], float]],
    until_s: float,
    *,
    least: int = LEAST_SAMPLES,
    most: int = MOST_SAMPLES,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Key, list[float]]:
    """Samples of each measure, taken in rounds of which every second goes backwards, so that a drift falls on all alike.

    There are at least `least` rounds, and no more than `most` or than begin before `until_s` on the clock.
    """
    samples: dict[Key, list[float]] = {name: [] for name in measures}
    order = list(measures)
    for number in range(most):
        if number >= least and clock() >= until_s:
            break
        for name in order if number % 2 == 0 else reversed(order):
            samples[name].append(rounded(measures[name]()))
    return samples


def rounded(value: float) -> float:
    """The number with six significant digits: a timer gives no more."""
    return float(f"{value:.6g}")


def _nothing() -> None:
    """The work of which only the timer's own time is left."""
