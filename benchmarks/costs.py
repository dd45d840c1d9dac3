"""asv benchmarks of costs: `asv run v2.14.1^! --bench track_cost` measures the workloads as `replaydrift measure` does.

The first benchmark of a release makes one visit, which is stored as a block of its own, and leaves its medians for the others. They have
the names, units and versions that `replaydrift publish` derives from the store. One process is a glance: for costs that can be compared
measure the releases in turns, with `nox -s upgrade` or `replaydrift measure`. On the CPU model only what can be counted has a number.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import verdicts
from replaydrift.catalogue import read_catalogue
from replaydrift.commands.measure import VisitProgress
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.suite import WORKLOADS
from replaydrift.costs.visits import CostWishes, measure
from replaydrift.history.cost_lines import cost_benchmark, cost_benchmark_name
from replaydrift.history.result_files import TIMEOUT_S
from replaydrift.measuring.workloads import version_of

RUN = (
    "replay_gpu_us", "replay_host_us", "first_replay_us", "eager_gpu_us", "eager_host_us",
    "capture_ms", "record_ms", "instantiate_ms", "nodes", "pool_bytes",
)  # fmt: skip


def setup_cache() -> Path:
    """The folder that the benchmarks of one release share; asv calls this once for it."""
    return verdicts.setup_cache()


def run_workloads() -> dict[str, float]:
    """Medians by benchmark, from a visit whose costs are in the store now."""
    wishes = CostWishes(
        pythons=((verdicts.RELEASE, verdicts.PYTHON),),
        visits=1,
        machine=os.environ.get("REPLAYDRIFT_MACHINE"),
        note="measured by asv",
        subjects=WORKLOADS,
    )
    store = CostStore(Path(os.environ.get("REPLAYDRIFT_RESULTS", verdicts.PROJECT / "results")))
    with VisitProgress() as watcher:
        measured = measure(wishes, read_catalogue(verdicts.LIBRARY), verdicts.LIBRARY.cases, store, watcher)
    return {cost_benchmark_name(subject, metric): median(values) for subject, metric, values in measured.costs[0].series()}


def numbers_of(folder: Path) -> dict[str, float]:
    """The same, measured only where no benchmark before this one has left them in `folder`."""
    path = folder / "costs.json"
    if not path.is_file():
        path.write_text(json.dumps(run_workloads()))
    found: dict[str, float] = json.loads(path.read_text())
    return found


def benchmark_of(subject: str, metric: str) -> Callable[[Path], float]:
    """The benchmark of one metric of a workload: NaN, which asv calls skipped, where it cannot be had."""
    facts = cost_benchmark(subject, METRICS[metric], version_of(subject.partition("/")[0]))

    def track(folder: Path) -> float:
        return numbers_of(folder).get(facts["name"], math.nan)

    track.benchmark_name = facts["name"]
    track.timeout = TIMEOUT_S
    for name in ("pretty_name", "unit", "version"):
        setattr(track, name, facts[name])
    return track


setup_cache.timeout = TIMEOUT_S
for _subject in WORKLOADS:
    for _metric in RUN:
        globals()[cost_benchmark_name(_subject, _metric)] = benchmark_of(_subject, _metric)
