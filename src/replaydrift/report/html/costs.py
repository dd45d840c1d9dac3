"""Costs as a report shows them: a plot a metric over releases, and after how many replays a capture has paid for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

from replaydrift import releases
from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.plots import interval, plot, shown, units


@dataclass(frozen=True)
class Series:
    """One metric of one case on one machine over releases, oldest first, with its plot."""

    case: str
    machine: str
    metric: str
    costs: tuple[Cost, ...]
    plot: Markup

    @property
    def unit(self) -> str:
        """`ms`, `µs`, `bytes`, `share`, or nothing."""
        return units(self.metric)

    @property
    def rows(self) -> list[tuple[str, str, str, str, int]]:
        """Release, block, median, interval and number of processes, for the table under the plot."""
        listed = []
        for cost in self.costs:
            low, middle, high = interval(cost.samples)
            listed.append(
                (
                    cost.release,
                    cost.block,
                    shown(middle, self.metric),
                    f"{shown(low, self.metric)} to {shown(high, self.metric)}",
                    len(cost.samples),
                )
            )
        return listed


@dataclass(frozen=True, slots=True)
class BreakEven:
    """After how many replays a capture has paid for itself; None where a replay is not faster than eager mode."""

    case: str
    machine: str
    block: str
    release: str
    capture_ms: float
    replay_us: float
    eager_us: float

    @property
    def replays(self) -> float | None:
        """Capture time over what one replay saves."""
        saved = self.eager_us - self.replay_us
        return self.capture_ms * 1000 / saved if saved > 0 else None


def series(costs: Iterable[Cost]) -> Iterator[Series]:
    """The series of these costs, by machine and metric."""
    found: dict[tuple[str, str, str], list[Cost]] = {}
    for cost in costs:
        if cost.samples:
            found.setdefault((cost.case, cost.machine, cost.metric), []).append(cost)
    for (case, machine, metric), own in sorted(found.items()):
        ordered = sorted(own, key=lambda cost: (cost.block, releases.order(cost.release)))
        yield Series(case, machine, metric, tuple(ordered), plot(ordered))


def by_case(costs: Sequence[Cost]) -> list[tuple[str, list[Series]]]:
    """All series, case by case."""
    groups: dict[str, list[Series]] = {}
    for one in series(costs):
        groups.setdefault(one.case, []).append(one)
    return list(groups.items())


def break_evens(costs: Iterable[Cost]) -> list[BreakEven]:
    """The break-even of every case that has `capture_ms`, `replay_us` and `eager_us` of one release in one block."""
    found: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for cost in costs:
        if cost.samples and cost.metric in ("capture_ms", "replay_us", "eager_us"):
            found.setdefault((cost.case, cost.machine, cost.block, cost.release), {})[cost.metric] = median(cost.samples)
    whole = [(key, metrics) for key, metrics in found.items() if len(metrics) == 3]
    whole.sort(key=lambda item: (*item[0][:3], releases.order(item[0][3])))
    return [BreakEven(*key, metrics["capture_ms"], metrics["replay_us"], metrics["eager_us"]) for key, metrics in whole]
