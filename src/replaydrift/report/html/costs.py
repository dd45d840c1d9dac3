"""Costs over releases as a report shows them: a plot a metric, with its numbers under it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from replaydrift import releases
from replaydrift.costs.metrics import METRICS
from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.numbers import interval, shown, units
from replaydrift.report.html.plots import plot

# The order of the table of metrics: what one asks first comes first.
_PLACES = {metric: place for place, metric in enumerate(METRICS)}


@dataclass(frozen=True)
class Series:
    """One metric of one subject on one machine over releases, oldest first, with its plot."""

    subject: str
    machine: str
    metric: str
    costs: tuple[Cost, ...]
    plot: Markup

    @property
    def unit(self) -> str:
        """`ms`, `µs`, `bytes`, or nothing for a count."""
        return units(self.metric)

    @property
    def meaning(self) -> str:
        """What the number includes; empty for one that the table of metrics does not know."""
        return METRICS[self.metric].meaning if self.metric in METRICS else ""

    @property
    def rows(self) -> list[tuple[str, str, str, str, int]]:
        """Release, block, median, interval and number of processes, for the table under the plot."""
        listed = []
        for cost in self.costs:
            low, middle, high = interval(cost.samples)
            between = f"{shown(low, self.metric)} to {shown(high, self.metric)}"
            listed.append((cost.release, cost.block, shown(middle, self.metric), between, len(cost.samples)))
        return listed


def series(costs: Iterable[Cost]) -> Iterator[Series]:
    """The series of these costs, by subject, machine and metric."""
    found: dict[tuple[str, str, int, str], list[Cost]] = {}
    for cost in costs:
        found.setdefault((cost.subject, cost.machine, _PLACES.get(cost.metric, len(_PLACES)), cost.metric), []).append(cost)
    for (subject, machine, _, metric), own in sorted(found.items()):
        ordered = sorted(own, key=lambda cost: (cost.block, releases.order(cost.release)))
        yield Series(subject, machine, metric, tuple(ordered), plot(ordered))
