"""asv benchmarks of the cases: `asv run v2.13.0..v2.14.1` runs them as `replaydrift run` does, and fills the same store.

A case has the three numbers that `replaydrift publish` derives from the store, under the same names and versions. asv gives
all benchmarks of one commit one folder: the first of a group runs the group and leaves its numbers there for the others.
Afterwards `replaydrift publish` derives everything anew. REPLAYDRIFT_RESULTS and REPLAYDRIFT_MACHINE name another store, another
machine; the plugin of asv names the release and its interpreter, and without it the interpreter is the one that runs this.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from replaydrift.catalogue import read_catalogue
from replaydrift.errors import RunError
from replaydrift.history.figures import figures_of
from replaydrift.history.result_files import KINDS, TIMEOUT_S, baselines, benchmark, benchmark_name, numbers, read_machine
from replaydrift.library import Case, read_library
from replaydrift.progress import PlainProgress
from replaydrift.releases import read_table
from replaydrift.store import Store
from replaydrift.sweep import Wishes, sweep

PROJECT = Path(__file__).resolve().parents[1]
LIBRARY = read_library(PROJECT / "cases")
PYTHON, RELEASE = os.environ.get("REPLAYDRIFT_PYTHON", sys.executable), os.environ.get("REPLAYDRIFT_RELEASE")


def setup_cache() -> Path:
    """The folder that the benchmarks of one commit share; asv calls this once for it, and runs none of them if it raises."""
    if not Path(PYTHON).is_file():
        raise RunError(f"no interpreter {PYTHON!r}: make the environment first, with nox -s matrix -- --release {RELEASE}")
    folder = Path("numbers").absolute()
    folder.mkdir()
    return folder


def run_group(group: str) -> dict[str, float | None]:
    """The numbers of a group's cases by benchmark, from a sweep of the group whose records are in the store now."""
    catalogue = read_catalogue(LIBRARY)
    store = Store(Path(os.environ.get("REPLAYDRIFT_RESULTS", PROJECT / "results")))
    wishes = Wishes(
        python=PYTHON,
        release=RELEASE,
        machine=os.environ.get("REPLAYDRIFT_MACHINE"),
        resume=True,
    )
    with PlainProgress() as watcher:
        swept = sweep(wishes, catalogue, LIBRARY.group(group).cases, store, watcher)
    bases = baselines(read_machine(store, swept.environment.machine, read_table(PROJECT / "torch-releases.toml")))
    found: dict[str, float | None] = {}
    for record in swept.records:
        found |= numbers(record.case, figures_of(record, swept.environment), bases)
    return found


def numbers_of(folder: Path, group: str) -> dict[str, float | None]:
    """The same, run only where no benchmark before this one has left them in `folder`."""
    path = folder / f"{group}.json"
    if not path.is_file():
        path.write_text(json.dumps(run_group(group)))
    found: dict[str, float | None] = json.loads(path.read_text())
    return found


def benchmark_of(case: Case, kind: str) -> Callable[[Path], float | None]:
    """The benchmark of one number of a case: NaN, which asv calls skipped, where the case has no such number."""

    def track(folder: Path) -> float | None:
        return numbers_of(folder, case.group).get(benchmark_name(case.name, kind), math.nan)

    facts = benchmark(case.name, kind, case.version)
    track.benchmark_name = facts["name"]
    for name in ("pretty_name", "timeout", "unit", "version"):
        setattr(track, name, facts[name])
    return track


setup_cache.timeout = TIMEOUT_S
for _case in LIBRARY.cases:
    for _kind in KINDS:
        globals()[benchmark_name(_case.name, _kind)] = benchmark_of(_case, _kind)
