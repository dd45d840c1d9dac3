"""Tables of costs: medians of metrics, a row a subject; the cases of a group beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from replaydrift.costs.records import Costs
from replaydrift.report.html.numbers import with_unit

# What a column shows: the median of a metric, or what a function says about a subject.
Column = str | Callable[[Costs, str], str]

# The columns of what a step costs, as a reader calls them.
STEP: Final[Mapping[str, Column]] = {
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


@dataclass(frozen=True)
class Table:
    """Rows of texts under a row of headings; the first cell of a row names its subject."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def kind_of(subject: str) -> str:
    """`bucketing` for a trace, `workload` for a name that ends in its size, else `case`."""
    head, _, tail = subject.partition("/")
    return "bucketing" if head == "bucketing" else "workload" if tail.isdecimal() else "case"


def groups(costs: Costs) -> Iterator[tuple[str, Table]]:
    """The cases of each group beside each other: what each fix costs."""
    found: dict[str, list[str]] = {}
    for subject in costs.subjects:
        if kind_of(subject) == "case":
            found.setdefault(subject.partition("/")[0], []).append(subject)
    for group, subjects in sorted(found.items()):
        table = table_of(costs, subjects, "case", STEP)
        if len(table.columns) > 1:
            yield group, table


def table_of(costs: Costs, subjects: Sequence[str], first: str, columns: Mapping[str, Column], *, shorten: str = "") -> Table:
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
