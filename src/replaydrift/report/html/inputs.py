"""Costs as the report draws them: one metric of one subject on one release in one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from replaydrift.costs.records import Costs


@dataclass(frozen=True, slots=True)
class Cost:
    """One metric of one case or workload on one release in one block: one number a process, in the unit that ends its name."""

    machine: str
    block: str
    release: str
    subject: str
    metric: str
    samples: tuple[float, ...]


def flat(costs: Iterable[Costs]) -> Iterator[Cost]:
    """Every metric of every subject that a process of these costs has a number of."""
    for one in costs:
        for subject, metric, samples in one.series():
            if samples:
                yield Cost(one.environment.machine, one.block.name, one.environment.release, subject, metric, samples)
