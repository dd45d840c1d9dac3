"""What a report takes beside the overview: measured costs, and how the CPU model agreed with a GPU."""

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


@dataclass(frozen=True, slots=True)
class Agreed:
    """One case on one version of torch, run by the CPU model and by a GPU: both outcomes, and whether values agree too.

    `rules` are the written rules of the model that its outcome rests on: agreement through them is no evidence.
    """

    case: str
    version: str
    machine: str
    gpu: str
    model: str
    agrees: bool
    rules: tuple[str, ...] = ()
    timing: bool = False
