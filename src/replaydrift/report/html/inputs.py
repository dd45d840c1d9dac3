"""What a report takes beside the overview and the agreement: measured costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """One metric of one case (or benchmark) on one release in one block: one number a process, in the unit that ends its name."""

    machine: str
    block: str
    release: str
    case: str
    metric: str
    samples: tuple[float, ...]
