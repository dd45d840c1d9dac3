"""What one step costs at each length: a function made of measured points, of two numbers, or of nothing but the length."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from replaydrift.errors import TraceError


@dataclass(frozen=True)
class StepCost:
    """The cost of a step at a length: straight lines between points of growing length, and on beyond the first and the last.

    `unit` is that of the costs: `µs`, or `elements` where there is no clock behind them. Nothing costs less than 0.
    """

    points: tuple[tuple[int, float], ...]
    unit: str = "µs"

    def __post_init__(self) -> None:
        if not self.points:
            raise TraceError("a cost curve without a point: expected the cost of a step at one length at least")
        for length, cost in self.points:
            if not (length >= 0 and cost >= 0 and math.isfinite(cost)):
                raise TraceError(f"a cost curve with {cost!r} {self.unit} at length {length}: expected a finite number of at least 0")
        if len({length for length, _ in self.points}) < len(self.points):
            raise TraceError(f"a cost curve with two costs at one length: {self.points}; expected one")
        object.__setattr__(self, "points", tuple(sorted(self.points)))

    @classmethod
    def elements(cls) -> StepCost:
        """A step costs its length: what is minimised is padding, and exactly, since these are whole numbers."""
        return cls(((0, 0), (1, 1)), "elements")

    @classmethod
    def linear(cls, fixed: float, slope: float, unit: str = "µs") -> StepCost:
        """`fixed` + `slope` × length; both at least 0."""
        return cls(((0, fixed), (1, fixed + slope)), unit)

    def at(self, length: int) -> float:
        """The cost of a step at this length; that of the only point at every length where there is one point."""
        if len(self.points) == 1:
            return self.points[0][1]
        place = min(max(bisect_left(self.points, length, key=lambda point: point[0]), 1), len(self.points) - 1)
        (left, low), (right, high) = self.points[place - 1 : place + 1]
        if right - left == 1:
            return max(low + (high - low) * (length - left), 0)
        return max(low + (high - low) * (length - left) / (right - left), 0)

    def all_at(self, lengths: Iterable[int]) -> list[float]:
        """The cost at each of the lengths."""
        return [self.at(length) for length in lengths]
