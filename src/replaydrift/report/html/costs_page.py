"""The page of costs, machine by machine: capture and replay against size, break-even, bucket policies, cases beside their siblings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from replaydrift import releases
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.records import Costs
from replaydrift.costs.statistics import NEEDED
from replaydrift.explanations import Explanation
from replaydrift.report.html.calibration import Believed, believed
from replaydrift.report.html.charts import Row, against_size, paid_after
from replaydrift.report.html.costs import Series, series
from replaydrift.report.html.costs_changed import Step, steps
from replaydrift.report.html.costs_tables import STEP, Table, groups, kind_of, table_of
from replaydrift.report.html.costs_traces import Trace, traces
from replaydrift.report.html.inputs import flat
from replaydrift.report.html.numbers import interval

_UNMEASURED: Final = "not measured"
_EACH_TIME: Final = {"eager_gpu_us": "eager step", "replay_gpu_us": "replay", "replay_host_us": "replay() call"}
_ONCE: Final = {"capture_ms": "capture", "instantiate_ms": "instantiate", "first_replay_us": "first replay"}


@dataclass(frozen=True)
class Shown:
    """Whose numbers a section shows: the newest release of the newest block that has such subjects."""

    costs: Costs

    @property
    def words(self) -> str:
        """Release, block and number of processes."""
        count = len(self.costs.kept)
        processes = "one process" if count == 1 else f"{count} processes"
        return f"torch {self.costs.environment.release}, block {self.costs.block.name}, {processes}"


@dataclass(frozen=True)
class Workloads:
    """What steps of several sizes cost: charts of each time and of once, break-even, and all numbers."""

    shown: Shown
    each_time: Markup
    once: Markup
    paid: Markup
    table: Table
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class CostsOfMachine:
    """All that the page shows of one machine; None and nothing where it was not measured."""

    machine: str
    engine: str
    gpu: str
    blocks: tuple[tuple[str, str, str, int, int], ...]  # Name, purpose, releases, processes that count, and those that were discarded.
    workloads: Workloads | None
    bucketing: Shown | None
    traces: tuple[Trace, ...]
    cases: Shown | None
    groups: tuple[tuple[str, Table], ...]
    compared: str  # The block whose releases are compared.
    changes: tuple[Step, ...]
    headlines: tuple[tuple[str, str, tuple[Series, ...]], ...]  # Metric, what it includes, and its subjects.
    believed: Believed | None
    failures: tuple[tuple[str, str, str], ...]  # Release, subject and what it raised.

    @property
    def modelled(self) -> bool:
        """True where the CPU model counted and nothing was timed."""
        return self.engine == "model"


def machines(costs: Sequence[Costs], entries: Sequence[Explanation] = ()) -> list[CostsOfMachine]:
    """The machines that have costs, those with a GPU first; `entries` are what people wrote about changes."""
    by_machine: dict[str, list[Costs]] = {}
    for one in costs:
        by_machine.setdefault(one.environment.machine, []).append(one)
    return sorted((_machine(own, entries) for own in by_machine.values()), key=lambda machine: (machine.modelled, machine.machine))


def finder(priced: Iterable[CostsOfMachine]) -> Callable[[str, str], Step | None]:
    """A function of a machine and a release that gives what its costs came to on arriving at it; None where they were not compared."""
    known = {(machine.machine, step.new): step for machine in priced for step in machine.changes}
    return lambda machine, release: known.get((machine, release))


def _machine(own: Sequence[Costs], entries: Sequence[Explanation]) -> CostsOfMachine:
    place = own[0].environment
    bucketing, cases = _newest(own, "bucketing"), _newest(own, "case")
    compared = _newest_pair(own)
    return CostsOfMachine(
        machine=place.machine,
        engine=place.engine,
        gpu=place.gpu,
        blocks=tuple(_blocks(own)),
        workloads=_workloads(_newest(own, "workload")),
        bucketing=bucketing,
        traces=tuple(traces(bucketing.costs)) if bucketing else (),
        cases=cases,
        groups=tuple(groups(cases.costs)) if cases else (),
        compared=compared[0].block.name if compared else "",
        changes=tuple(steps(compared, entries)),
        headlines=tuple(_headlines(own)),
        believed=believed(own),
        failures=tuple(dict.fromkeys(_failures(own))),
    )


def _newest(own: Sequence[Costs], kind: str) -> Shown | None:
    """The newest release of the newest block that has such subjects, from as many processes as a test needs where there are such blocks.

    A block that holds one release against itself is shown only where there is no other.
    """
    having = [one for one in own if any(kind_of(subject) == kind for subject in one.subjects)]
    having = [one for one in having if one.block.purpose != "aa"] or having
    having = [one for one in having if _is_enough(one)] or having
    block = max((one.block.name for one in having), default="")
    ordered = sorted((one for one in having if one.block.name == block), key=lambda one: releases.order(one.environment.release))
    return Shown(ordered[-1]) if ordered else None


def _is_enough(costs: Costs) -> bool:
    """True where there are as many processes as the tests need; what is only counted needs one."""
    return len(costs.kept) >= (1 if costs.environment.engine == "model" else NEEDED)


def _newest_pair(own: Sequence[Costs]) -> list[Costs]:
    """All of the newest block that has more than one release with enough processes; nothing where there is none."""
    blocks: dict[str, list[Costs]] = {}
    for one in filter(_is_enough, own):
        blocks.setdefault(one.block.name, []).append(one)
    several = [name for name, those in blocks.items() if len(those) > 1]
    return blocks[max(several)] if several else []


def _headlines(own: Sequence[Costs]) -> Iterator[tuple[str, str, tuple[Series, ...]]]:
    """The costs of the gate over releases, in the order of the table of metrics."""
    drawn: dict[str, list[Series]] = {}
    for one in series(cost for cost in flat(own) if is_headline(cost.subject, cost.metric)):
        drawn.setdefault(one.metric, []).append(one)
    for metric in METRICS:
        if metric in drawn:
            yield metric, METRICS[metric].meaning, tuple(sorted(drawn[metric], key=lambda one: _by_size(one.subject)))


def _blocks(own: Sequence[Costs]) -> Iterator[tuple[str, str, str, int, int]]:
    for name in sorted({one.block.name for one in own}, reverse=True):
        those = sorted((one for one in own if one.block.name == name), key=lambda one: releases.order(one.environment.release))
        kept = sum(len(one.kept) for one in those)
        yield name, those[0].block.purpose, ", ".join(one.environment.release for one in those), kept, sum(len(one.visits) for one in those) - kept


def _workloads(found: Shown | None) -> Workloads | None:
    if found is None:
        return None
    costs = found.costs
    subjects = sorted((subject for subject in costs.subjects if kind_of(subject) == "workload"), key=_by_size)
    chains = [subject for subject in subjects if subject.startswith("chain/")]
    lacks = {f"{metric}: {why}" for subject in subjects for one in costs.of(subject) for metric, why in one.lacks.items()}
    return Workloads(
        shown=found,
        each_time=_over_sizes(costs, chains, _EACH_TIME, "What every step costs"),
        once=_over_sizes(costs, chains, _ONCE, "What is paid once"),
        paid=paid_after([_paid(costs, subject) for subject in subjects], "Replays after which a capture has paid for itself"),
        table=table_of(costs, subjects, "workload", {**STEP, "replays that pay": _paid_text}),
        lacks=tuple(sorted(lacks)),
    )


def _over_sizes(costs: Costs, chains: Iterable[str], metrics: Mapping[str, str], label: str) -> Markup:
    lines: dict[str, dict[int, tuple[float, float, float]]] = {}
    for metric, name in metrics.items():
        factor = 1000 if metric.endswith("_ms") else 1
        for chain in chains:
            if values := costs.values(chain, metric):
                low, middle, high = interval([factor * value for value in values])
                lines.setdefault(name, {})[int(chain.partition("/")[2])] = (low, middle, high)
    return against_size(lines, label, "kernels in the graph")


def _paid(costs: Costs, subject: str) -> Row:
    """Warm-up and capture over what one replay saves against eager code, process by process."""
    samples = []
    for one in costs.of(subject):
        capture, replay, eager = one.value("capture_ms"), one.value("replay_gpu_us"), one.value("eager_gpu_us")
        if capture is not None and replay is not None and eager is not None:
            once = 1000 * (capture + (one.value("warmup_ms") or 0))
            samples.append(once / (eager - replay) if eager > replay else math.inf)
    if not samples:
        return Row(subject, None, _UNMEASURED)
    low, middle, high = interval(samples)
    if math.isinf(high):
        return Row(subject, None, "never: no faster than eager" if math.isinf(middle) else "not sure: not always faster than eager")
    return Row(subject, (low, middle, high))


def _paid_text(costs: Costs, subject: str) -> str:
    """The same in a word."""
    row = _paid(costs, subject)
    if row.value:
        return f"{row.value[1]:,.0f}"
    return "" if row.note == _UNMEASURED else row.note.partition(":")[0]


def _failures(own: Iterable[Costs]) -> Iterator[tuple[str, str, str]]:
    for costs in own:
        for subject in costs.subjects:
            yield from ((costs.environment.release, subject, one.failed) for one in costs.of(subject) if one.failed)


def _by_size(subject: str) -> tuple[str, int, str]:
    head, _, tail = subject.partition("/")
    return head, int(tail) if tail.isdecimal() else 0, tail
