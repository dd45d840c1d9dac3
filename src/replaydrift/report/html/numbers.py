"""Numbers as a reader wants them: short, in a unit one reads, with the interval that their processes allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from replaydrift.costs.metrics import METRICS

_UNITS = {"us": "µs", "ms": "ms", "bytes": "bytes"}
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_LEVEL = 0.95


def units(metric: str) -> str:
    """The unit of a metric, such as `µs`; nothing for a count."""
    return _UNITS.get(METRICS[metric].unit if metric in METRICS else metric.rsplit("_", 1)[-1], "")


def shown(value: float, metric: str) -> str:
    """The number with at most four digits, a count with all of them; bytes in KiB or MiB, since nobody reads millions of bytes."""
    size, name = scale(value, metric)
    if not units(metric) and value == int(value):
        return f"{int(value):,}"
    return f"{_short(value / size)} {name}".strip()


def with_unit(value: float, metric: str) -> str:
    """The same with its unit: `12.35 µs`, `3 MiB`."""
    unit = units(metric)
    return shown(value, metric) if scale(value, metric)[1] or not unit else f"{shown(value, metric)} {unit}"


def scale(value: float, metric: str) -> tuple[int, str]:
    """What to divide such a value by, and the name of the unit it is then in."""
    sizes = _BYTES if metric.endswith("bytes") else ()
    return next(((size, name) for size, name in sizes if abs(value) >= size), (1, ""))


def interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """The ends of an interval around the median of the processes' numbers, with that median between them.

    From six processes on it holds the median of all the processes there could be with 95 % confidence or more, whatever their
    distribution: from the k-th lowest to the k-th highest, where k is the largest number that leaves that confidence. Of fewer
    processes it is all they saw, lowest to highest.
    """
    ordered, count = sorted(samples), len(samples)
    missed, place = 0.5**count, 0  # How likely it is that all processes lie on one given side of the median.
    while 2 * (missed + math.comb(count, place + 1) * 0.5**count) <= 1 - _LEVEL:
        place += 1
        missed += math.comb(count, place) * 0.5**count
    return ordered[place], median(ordered), ordered[-1 - place]


def _short(value: float) -> str:
    """Four digits, without an exponent where one can do without."""
    text = f"{value:.4g}"
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e15 else text
