"""The host's pace just now: how long a fixed piece of work takes that no release of torch has a part in.

A host does the same capture in a time that differs by a fifth or more between processes, for the core and its neighbours are what they
happen to be, and all that the process does on the host is slow or fast together. What is timed beside each sample tells the two apart:
a sample over the pace at its moment says how much work there was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_OBJECTS: Final = 2500
_HELD: Final = 256
_LONGEST_CHAIN: Final = 50


class _Node:
    __slots__ = ("before", "number")

    def __init__(self, before: _Node | None, number: int) -> None:
        self.before, self.number = before, number


def beat() -> int:
    """Make, link and drop some thousand small objects, as a dispatcher does for its calls: about 300 µs, and nothing else in them."""
    held: dict[int, _Node] = {}
    last: _Node | None = None
    for number in range(_OBJECTS):
        last = _Node(last if number % _LONGEST_CHAIN else None, number)
        held[number % _HELD] = last
    return len(held)


def beat_us(clock_ns: Callable[[], int] = time.perf_counter_ns) -> float:
    """The host's time of one beat, in microseconds."""
    begun = clock_ns()
    beat()
    return (clock_ns() - begun) / 1000
