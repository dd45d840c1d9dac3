"""The page of costs, machine by machine: capture and replay against size, break-even, bucket policies, cases beside their siblings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from markupsafe import Markup

from replaydrift import releases
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.policies import MEASURED
from replaydrift.costs.records import Costs
from replaydrift.costs.statistics import NEEDED
from replaydrift.explanations import Explanation
from replaydrift.report.html.calibration import Believed, believed
from replaydrift.report.html.charts import Row, against_size, bars, paid_after
from replaydrift.report.html.costs import Series, series
from replaydrift.report.html.costs_changed import Step, steps
from replaydrift.report.html.inputs import flat
from replaydrift.report.html.numbers import interval, with_unit

# What a column shows: the median of a metric, or what a function says about a subject.
Column = str | Callable[[Costs, str], str]

_UNMEASURED: Final = "not measured"
_EACH_TIME: Final = {"eager_gpu_us": "eager step", "replay_gpu_us": "replay", "replay_host_us": "replay() call"}
_ONCE: Final = {"capture_ms": "capture", "instantiate_ms": "instantiate", "first_replay_us": "first replay"}


@dataclass(frozen=True)
class Table:
    """Rows of texts under a row of headings; the first cell of a row names its subject."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
class Trace:
    """What policies make of one trace through one model."""

    model: str
    name: str
    timed: bool  # The chart is of times; else of the elements that are computed.
    chart: Markup
    table: Table


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
        traces=tuple(_traces(bucketing.costs)) if bucketing else (),
        cases=cases,
        groups=tuple(_groups(cases.costs)) if cases else (),
        compared=compared[0].block.name if compared else "",
        changes=tuple(steps(compared, entries)),
        headlines=tuple(_headlines(own)),
        believed=believed(own),
        failures=tuple(dict.fromkeys(_failures(own))),
    )


def kind_of(subject: str) -> str:
    """`bucketing` for a trace, `workload` for a name that ends in its size, else `case`."""
    head, _, tail = subject.partition("/")
    return "bucketing" if head == "bucketing" else "workload" if tail.isdecimal() else "case"


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
        table=_table(costs, subjects, "workload", {**_STEP, "replays that pay": _paid_text}),
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


def _traces(costs: Costs) -> Iterator[Trace]:
    """Models and traces by name; the policies in the order in which they are listed everywhere."""
    found: dict[tuple[str, str], list[str]] = {}
    for subject in costs.subjects:
        parts = subject.split("/")
        if len(parts) == 4 and parts[0] == "bucketing":
            found.setdefault((parts[1], parts[2]), []).append(parts[3])
    for (model, name), policies in sorted(found.items()):
        prefix = f"bucketing/{model}/{name}/"
        subjects = [prefix + policy for policy in sorted(policies, key=lambda policy: (*_place(policy), policy))]
        timed = any(costs.values(subject, "trace_gpu_ms") for subject in subjects)
        metric = "trace_gpu_ms" if timed else "padded_elements"
        rows = [_trace_row(costs, subject, metric) for subject in subjects]
        chart = bars(rows, metric, f"The {name} trace through the {model}")
        yield Trace(model, name, timed, chart, _table(costs, subjects, "policy", _TRACE, shorten=prefix))


def _place(policy: str) -> tuple[int]:
    return (MEASURED.index(policy) if policy in MEASURED else len(MEASURED),)


def _trace_row(costs: Costs, subject: str, metric: str) -> Row:
    values, wrong, waste = costs.values(subject, metric), costs.values(subject, "wrong_results"), _waste(costs, subject)
    notes = [f"{waste} waste"] if waste not in ("", "0.0%") else []
    notes += [f"✗ {max(wrong):.0f} wrong"] if any(wrong) else []
    return Row(subject.rpartition("/")[2], interval(values) if values else None, ", ".join(notes))


def _waste(costs: Costs, subject: str) -> str:
    """Padded minus real over padded."""
    real, padded = costs.values(subject, "real_elements"), costs.values(subject, "padded_elements")
    return f"{1 - median(real) / median(padded):.1%}" if real and padded and median(padded) else ""


def _with_capture(costs: Costs, subject: str) -> str:
    """The trace and all captures, process by process."""
    pairs = [(one.value("trace_gpu_ms"), one.value("trace_capture_ms")) for one in costs.of(subject)]
    totals = [trace + (capture or 0) for trace, capture in pairs if trace is not None]
    return with_unit(median(totals), "trace_gpu_ms") if totals else ""


def _groups(costs: Costs) -> Iterator[tuple[str, Table]]:
    """The cases of each group beside each other: what each fix costs."""
    found: dict[str, list[str]] = {}
    for subject in costs.subjects:
        if kind_of(subject) == "case":
            found.setdefault(subject.partition("/")[0], []).append(subject)
    for group, subjects in sorted(found.items()):
        table = _table(costs, subjects, "case", _STEP)
        if len(table.columns) > 1:
            yield group, table


def _table(costs: Costs, subjects: Sequence[str], first: str, columns: Mapping[str, Column], *, shorten: str = "") -> Table:
    """The medians of metrics and what else the columns say, those left out that no subject has; `shorten` is cut off the subjects."""
    found: list[tuple[str, list[str]]] = []
    for name, column in columns.items():
        texts = [_median(costs, subject, column) if isinstance(column, str) else column(costs, subject) for subject in subjects]
        found += [(name, texts)] if any(texts) else []
    rows = zip(*([subject.removeprefix(shorten) for subject in subjects], *(texts for _, texts in found)), strict=True)
    return Table((first, *(name for name, _ in found)), tuple(rows))


def _median(costs: Costs, subject: str, metric: str) -> str:
    values = costs.values(subject, metric)
    return with_unit(median(values), metric) if values else ""


# The columns of the tables, as a reader calls them.
_STEP: Final[Mapping[str, Column]] = {
    "eager step": "eager_gpu_us",
    "replay": "replay_gpu_us",
    "replay() call": "replay_host_us",
    "bare launch loop": "bare_loop_gpu_us",
    "first replay": "first_replay_us",
    "capture": "capture_ms",
    "of which recording": "record_ms",
    "of which instantiation": "instantiate_ms",
    "pool": "pool_bytes",
    "nodes": "nodes",
    "graphs": "graphs",
}
_TRACE: Final[Mapping[str, Column]] = {
    "buckets": "buckets",
    "waste": _waste,
    "trace": "trace_gpu_ms",
    "with capture": _with_capture,
    "of the trace: input copies": "input_copy_ms",
    "output clones": "output_clone_ms",
    "reserved, own pools": "own_pools_reserved_bytes",
    "reserved, one pool": "reserved_bytes",
    "wrong results": "wrong_results",
}


def _failures(own: Iterable[Costs]) -> Iterator[tuple[str, str, str]]:
    for costs in own:
        for subject in costs.subjects:
            yield from ((costs.environment.release, subject, one.failed) for one in costs.of(subject) if one.failed)


def _by_size(subject: str) -> tuple[str, int, str]:
    head, _, tail = subject.partition("/")
    return head, int(tail) if tail.isdecimal() else 0, tail
