"""Results as tidy pandas frames, for a notebook: `replaydrift.frames.verdicts()` and `.costs()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.store import Store
from replaydrift.verdicts import summarise, verdict

_VERDICTS = [
    "machine", "engine", "gpu", "release", "group", "case", "kind", "version", "attempt", "outcome", "verdict", "settled",
    "observed", "duration_ms", "capture_ms", "warnings",
]  # fmt: skip
_COSTS = [
    "machine", "engine", "gpu", "release", "block", "purpose", "subject", "version", "metric", "exact", "headline", "process", "sample",
    "value",
]  # fmt: skip


def verdicts(results: Path | str = "results") -> pd.DataFrame:
    """One row an attempt: where it ran, its outcome and verdict, the observed side of its strip, its times in milliseconds.

    `settled` is the verdict of all attempts of the case together, `flaky` where they disagree. An empty store gives an
    empty frame with the same columns; StoreError where a file of it cannot be read.
    """
    rows: list[dict[str, Any]] = []
    for sweep in Store(Path(results)).sweeps():
        for name, record in sweep.cases.items():
            together = summarise(record).verdict
            for number, attempt in enumerate(record.attempts, 1):
                rows.append({
                    "machine": sweep.environment.machine,
                    "engine": sweep.environment.engine,
                    "gpu": sweep.environment.gpu,
                    "release": sweep.environment.release,
                    "group": name.split("/")[0],
                    "case": name,
                    "kind": record.kind,
                    "version": record.version,
                    "attempt": number,
                    "outcome": attempt.outcome.text,
                    "verdict": verdict(record.kind, attempt.outcome),
                    "settled": together,
                    "observed": attempt.observed,
                    "duration_ms": attempt.duration_ms,
                    "capture_ms": attempt.capture_ms,
                    "warnings": sum(warning.count for warning in attempt.warnings),
                })  # fmt: skip
    return pd.DataFrame(rows, columns=_VERDICTS)


def costs(results: Path | str = "results") -> pd.DataFrame:
    """One row a sample: where, release, block, subject, metric (its name ends in its unit), process, and value.

    `process` is the place of the visit in its block, and the process is the sample of every test: take the median over `sample`
    first. Costs compare within a block; across blocks only exact counts (`exact`) do. Discarded visits are left out. A store
    without costs gives an empty frame with the same columns; StoreError where a file of it cannot be read.
    """
    rows = [
        (
            costs.environment.machine, costs.environment.engine, costs.environment.gpu, costs.environment.release, costs.block.name,
            costs.block.purpose, name, subject.version, metric, METRICS[metric].exact if metric in METRICS else None,
            is_headline(name, metric), visit.number, number, float(value),
        )
        for costs in CostStore(Path(results)).everything()
        for visit in costs.kept
        for name, subject in sorted(visit.subjects.items())
        for metric, samples in sorted(subject.metrics.items())
        for number, value in enumerate(samples, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=_COSTS)
