"""A synthetic sweep, for a store that asv's files are derived from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from making import attempt, environment, record

from replaydrift.store import Store


def sweep(store: Store, release: str, machine: str = "h200", **verdicts: str | Sequence[str]) -> None:
    """Store cases of the group `rng`, named by keyword, with these outcomes; the capture takes 10 ms times the minor version."""
    engine, gpu = ("model", "CPU model") if machine == "model" else ("cuda", "NVIDIA H200")
    took = 10.0 * int(release.split(".")[1])
    cases = []
    for name, outcomes in verdicts.items():
        attempts = [outcomes] * 3 if isinstance(outcomes, str) else list(outcomes)
        timed = [replace(attempt(text), capture_ms=took) for text in attempts]
        kind = "bug" if name.startswith("bug") else "fix"
        cases.append(record(*timed, case=f"rng/{name.replace('_', '-')}", kind=kind))
    found = environment(release, machine, gpu, engine)
    store.write(replace(found, recorded=f"2026-12-{int(release.split('.')[1]):02}T00:00:00Z"), cases)
