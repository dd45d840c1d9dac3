"""What is known of one subject after it was measured, in the form in which a visit prints it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from replaydrift.measuring.timing import rounded


@dataclass
class Measured:
    """A subject with its samples by metric, and for metrics that cannot be had the reason."""

    subject: str
    version: str
    metrics: dict[str, list[float | int]] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)

    def count(self, metric: str, number: int) -> None:
        """Note an exact count."""
        self.metrics[metric] = [int(number)]

    def samples(self, metric: str, values: Iterable[float]) -> None:
        """Note samples; nothing is noted where there are none."""
        found = [rounded(value) for value in values]
        if found:
            self.metrics[metric] = list(found)

    def line(self) -> dict[str, Any]:
        """The line of the protocol."""
        return {"subject": self.subject, "version": self.version, "metrics": self.metrics, "lacks": self.lacks}
