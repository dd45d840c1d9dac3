"""What policies of buckets cost over a trace of requests: a chart and a table a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from markupsafe import Markup

from replaydrift.costs.policies import MEASURED
from replaydrift.costs.records import Costs
from replaydrift.report.html.charts import Row, bars
from replaydrift.report.html.costs_tables import Column, Table, table_of
from replaydrift.report.html.numbers import interval, with_unit


@dataclass(frozen=True)
class Trace:
    """What policies make of one trace through one model."""

    model: str
    name: str
    timed: bool  # The chart is of times; else of the elements that are computed.
    chart: Markup
    table: Table


def traces(costs: Costs) -> Iterator[Trace]:
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
        yield Trace(model, name, timed, chart, table_of(costs, subjects, "policy", _TRACE, shorten=prefix))


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


# The columns of the tables, as a reader calls them.
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
