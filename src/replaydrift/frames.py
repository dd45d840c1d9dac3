"""Results as tidy pandas frames, for a notebook: `replaydrift.frames.verdicts()` and `.costs()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from replaydrift.store import Store
from replaydrift.verdicts import summarise, verdict

_VERDICTS = [
    "machine", "engine", "gpu", "release", "group", "case", "kind", "version", "attempt", "outcome", "verdict", "settled",
    "observed", "duration_ms", "capture_ms", "warnings",
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
    """One row a measured number: where, release, case, metric (its name ends in its unit), process (the attempt) and value.

    What an attempt measures of itself is the host time of its captures, `capture_ms`. Times of the CPU model's virtual clock
    are no costs and are not in here. A store without costs gives an empty frame with the same columns.
    """
    frame = verdicts(results)
    measured = frame[(frame["engine"] == "cuda") & frame["capture_ms"].notna()]
    return pd.DataFrame({
        "machine": measured["machine"],
        "gpu": measured["gpu"],
        "release": measured["release"],
        "case": measured["case"],
        "metric": "capture_ms",
        "process": measured["attempt"],
        "value": measured["capture_ms"].astype(float),
    }).reset_index(drop=True)  # fmt: skip
