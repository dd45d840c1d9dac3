"""Costs for asv: one benchmark a metric and subject, with the samples of its processes, and a line of its own for each block.

Times compare within a block and not across blocks. So the name of a block is a parameter of its graphs, and no line joins two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from asv_runner.statistics import compute_stats

from replaydrift.costs.metrics import METRICS, Metric
from replaydrift.costs.pace import is_pace
from replaydrift.costs.records import Costs

PREFIX: Final = "track_cost_"
# What asv lists as a regression is a step larger than this share, and its list has no rate of false alarms of its own: it had none
# in simulations whose noise was a fifth of the threshold, so these are five times the noise that was seen of a median of six
# processes. A count has no noise, though asv takes a step of a percent for some. `replaydrift check` decides what changed.
_QUIET, _NOISY, _EXACT = 0.05, 0.5, 0.0
_HOST_S_PACE: Final = frozenset({"eager_gpu_us"})  # By the GPU's clock, but the host is what it waits for.


@dataclass(frozen=True)
class CostPoint:
    """The costs of one release in one block: by subject its version, and by metric one number a process."""

    release: str
    block: str
    versions: Mapping[str, str]
    values: Mapping[str, Mapping[str, tuple[float, ...]]]

    @classmethod
    def of(cls, costs: Costs) -> CostPoint:
        """What asv draws of stored costs: metrics of the table, of subjects whose processes all ran the same version."""
        values: dict[str, dict[str, tuple[float, ...]]] = {}
        versions: dict[str, str] = {}
        for subject, metric, samples in costs.series():
            ran = {one.version for one in costs.of(subject)}
            if metric in METRICS and not is_pace(metric) and samples and len(ran) == 1:
                values.setdefault(subject, {})[metric] = samples
                versions[subject] = ran.pop()
        return cls(costs.environment.release, costs.block.name, versions, values)


def cost_benchmark_name(subject: str, metric: str) -> str:
    """`chain.1000.track_cost_replay_gpu_us`: asv takes a dash for the start of a parameter's number."""
    return f"{subject.replace('-', '_').replace('/', '.')}.{PREFIX}{metric}"


def cost_benchmark(subject: str, metric: Metric, version: str) -> dict[str, Any]:
    """The entry of one benchmark in benchmarks.json. Its version is the subject's, so that no edit mixes old numbers with new."""
    return {
        "code": f"{metric.meaning}\n\nreplaydrift measure --subjects {subject}",
        "name": cost_benchmark_name(subject, metric.name),
        "param_names": [],
        "params": [],
        "pretty_name": f"{subject}: {metric.name}",
        "type": "track",
        "unit": metric.unit,
        "version": version,
    }


def cost_versions(points: Iterable[CostPoint]) -> dict[str, str]:
    """The version of each subject that its graphs are of: that of the newest block. Older versions are not comparable."""
    ordered = sorted(points, key=lambda point: point.block)
    return {subject: version for point in ordered for subject, version in point.versions.items()}


def cost_benchmarks(points: Sequence[CostPoint]) -> list[dict[str, Any]]:
    """The entries of all that was measured, sorted by name."""
    current = cost_versions(points)
    measured = {(subject, metric) for point in points for subject, metrics in point.values.items() for metric in metrics}
    return [cost_benchmark(subject, METRICS[metric], current[subject]) for subject, metric in sorted(measured)]


def cost_rows(point: CostPoint) -> dict[str, list[Any]]:
    """The rows of a result file by benchmark: the median over processes, and of times the samples with asv's own statistics."""
    return {
        cost_benchmark_name(subject, metric): _row(METRICS[metric], samples, point.versions[subject])
        for subject, metrics in point.values.items()
        for metric, samples in metrics.items()
    }


def _row(metric: Metric, samples: tuple[float, ...], version: str) -> list[Any]:
    """In the order of asv's columns, from `result` to `samples`; a count has nothing but its number."""
    result, stats = compute_stats(samples, 1)
    if metric.exact:
        return [[result], [], version]
    interval = [[stats[end]] if math.isfinite(stats[end]) else None for end in ("ci_99_a", "ci_99_b")]
    quarters = [[stats["q_25"]], [stats["q_75"]]]
    return [[result], [], version, None, None, *interval, *quarters, [1], [len(samples)], [list(samples)]]


def threshold(metric: Metric) -> float:
    """The share by which a number must step for asv to list it: a count at all, a time of the GPU by 5 %, one of the host by 50 %."""
    if metric.exact:
        return _EXACT
    return _NOISY if metric.clock == "host" or metric.name in _HOST_S_PACE else _QUIET


def thresholds() -> dict[str, float]:
    """What `regressions_thresholds` of asv says about costs: a pattern a threshold."""
    names: dict[float, list[str]] = {}
    for metric in METRICS.values():
        if is_pace(metric.name):
            continue
        names.setdefault(threshold(metric), []).append(metric.name)
    return {f".*{PREFIX}({'|'.join(sorted(own))})(@.*)?$": share for share, own in sorted(names.items())}
