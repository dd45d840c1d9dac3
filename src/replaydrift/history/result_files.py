"""asv's result files, derived from the store: benchmarks.json, and per machine machine.json and one file a release and wheel.

The format is schema 2 of asv, unchanged since 2019; a contract test loads what is written here with asv's own classes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from replaydrift import releases, stored_releases
from replaydrift.costs.cost_store import CostStore
from replaydrift.errors import StoreError
from replaydrift.history.chain import Step
from replaydrift.history.cost_lines import CostPoint, cost_benchmarks, cost_rows
from replaydrift.history.figures import CODES, Figures, code, differs, figures_of
from replaydrift.releases import Release, Table
from replaydrift.store import Store

ENVIRONMENT: Final = "torch"
DIFFERS, VERDICT, CAPTURE_MS = "track_differs_from_baseline", "track_verdict", "track_capture_ms"
TIMEOUT_S: Final = 3600.0
_COLUMNS: Final = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75",
    "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
_BENCHMARKS_VERSION, _RESULTS_VERSION, _MACHINE_VERSION = 2, 2, 1
_CODES_IN_WORDS: Final = ", ".join(f"{number} {word}" for word, number in CODES.items())
# Of each kind of benchmark: its unit, what follows the case in a list, and what its page says in the place of its code.
KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    DIFFERS: (
        "differs",
        "differs from the baseline",
        "1 where the verdict differs from that of the earliest release stored for the machine.",
    ),
    VERDICT: ("code", "verdict", f"The verdict as a code: {_CODES_IN_WORDS}."),
    CAPTURE_MS: ("ms", "capture time", "Milliseconds of capture, the median over attempts: a glance, not a measurement to judge by."),
}


@dataclass
class Recorded:
    """One stored release on one machine: the line it belongs to, and the figures of its cases by full name."""

    release: str
    wheel: str
    recorded: str
    figures: Mapping[str, Figures]


@dataclass
class Machine:
    """A machine with its releases, oldest first."""

    name: str
    engine: str
    gpu: str
    releases: list[Recorded] = field(default_factory=list)
    costs: list[tuple[str, CostPoint]] = field(default_factory=list)  # The line of its release, and what a block holds of it.

    @property
    def names(self) -> list[str]:
        """Every release that anything is stored of."""
        return list(dict.fromkeys([*(recorded.release for recorded in self.releases), *(point.release for _, point in self.costs)]))

    @property
    def facts(self) -> dict[str, str]:
        """What asv keeps of a machine; all of it is part of a graph's identity, so nothing that drifts may be in it."""
        return {"machine": self.name, "engine": self.engine, "gpu": self.gpu}


def benchmark_name(case: str, kind: str) -> str:
    """`shared_pool.fix_capture_order.track_verdict`: asv takes a dash for the start of a parameter's number."""
    return f"{case.replace('-', '_').replace('/', '.')}.{kind}"


def benchmark(case: str, kind: str, version: str) -> dict[str, Any]:
    """The entry of one benchmark in benchmarks.json. Its version is the case's, so that no edit mixes old numbers with new."""
    unit, pretty, meaning = KINDS[kind]
    return {
        "code": f"{meaning}\n\nreplaydrift show {case}",
        "name": benchmark_name(case, kind),
        "param_names": [],
        "params": [],
        "pretty_name": f"{case}: {pretty}",
        "timeout": TIMEOUT_S,
        "type": "track",
        "unit": unit,
        "version": version,
    }


def read_machines(store: Store, table: Table, say: Callable[[str], None] = lambda _: None) -> list[Machine]:
    """All machines of the store; StoreError where a file is damaged, or a machine's results are of two engines or GPUs."""
    machines = []
    for name in sorted({*store.machines(), *CostStore(store.root).machines()}):
        say(f"reads {len(store.releases(name))} releases of machine {name}, {len(CostStore(store.root).blocks(name))} blocks of costs")
        machines.append(read_machine(store, name, table))
    return machines


def read_machine(store: Store, name: str, table: Table) -> Machine:
    """One machine, with numbers in the place of records: what a history needs fits into memory, a whole store may not."""
    machine: Machine | None = None
    costs = [one for block in CostStore(store.root).blocks(name) for one in CostStore(store.root).read_block(name, block)]
    swept = store.releases(name)
    lines = dict(_in_order(sorted({*swept, *(one.environment.release for one in costs)}), table))
    for release in (release for release in lines if release in swept):
        sweep = store.read(name, release)
        environment = sweep.environment
        machine = machine or Machine(name, environment.engine, environment.gpu)
        if environment.place != (machine.engine, machine.gpu):
            raise StoreError(
                f"machine {name!r} holds results of {machine.engine!r} on {machine.gpu!r} and of {environment.engine!r} on "
                f"{environment.gpu!r} ({release}): move one of them to a folder of its own under {str(store.verdicts)!r}",
            )
        figures = {case: figures_of(record, environment) for case, record in sweep.cases.items()}
        machine.releases.append(Recorded(release, lines[release], environment.recorded, figures))
    for one in costs:
        machine = machine or Machine(name, one.environment.engine, one.environment.gpu)
        machine.costs.append((lines[one.environment.release], CostPoint.of(one)))
    if machine is None:
        raise StoreError(f"machine {name!r} has no results in {str(store.root)!r}: run `nox -s matrix` first")
    return machine


def versions(machines: Sequence[Machine]) -> dict[str, str]:
    """The version of each case that its graphs are of: that of its most recent record. Older versions are not comparable."""
    newest: dict[str, tuple[str, tuple[Any, ...], str]] = {}
    for machine in machines:
        for recorded in machine.releases:
            key = (recorded.recorded, releases.order(recorded.release))
            for case, figures in recorded.figures.items():
                if case not in newest or (*key, figures.version) > newest[case]:
                    newest[case] = (*key, figures.version)
    return {case: newest[case][-1] for case in sorted(newest)}


def baselines(machine: Machine) -> dict[tuple[str, str], str]:
    """By case and version: the verdict that later ones are held against, which is the first that the machine states."""
    bases: dict[tuple[str, str], str] = {}
    for recorded in machine.releases:
        for case, figures in recorded.figures.items():
            if figures.states:
                bases.setdefault((case, figures.version), figures.verdict)
    return bases


def numbers(case: str, figures: Figures, bases: Mapping[tuple[str, str], str]) -> dict[str, float | None]:
    """What is drawn of a case on a release, by the name of its benchmark; without a capture time where there is none."""
    drawn = {DIFFERS: differs(figures, bases.get((case, figures.version))), VERDICT: code(figures)}
    if figures.capture_ms is not None:
        drawn[CAPTURE_MS] = figures.capture_ms
    return {benchmark_name(case, kind): value for kind, value in drawn.items()}


def write_result_files(folder: Path, machines: Sequence[Machine], chain: Sequence[Step], commits: Mapping[str, str]) -> int:
    """The number of result files in `folder`, which is replaced as a whole; `commits` has the commit of each version."""
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    current = versions(machines)
    everything = [recorded for machine in machines for recorded in machine.releases]
    measured = {case for recorded in everything for case, seen in recorded.figures.items() if seen.capture_ms is not None}
    kinds = {case: [DIFFERS, VERDICT, *([CAPTURE_MS] if case in measured else [])] for case in current}
    entries = [benchmark(case, kind, current[case]) for case in current for kind in kinds[case]]
    entries += cost_benchmarks([point for machine in machines for _, point in machine.costs])
    _write(fresh / "benchmarks.json", {entry["name"]: entry for entry in entries} | {"version": _BENCHMARKS_VERSION})
    seconds = {step.version: step.seconds for step in chain}

    def add(machine: Machine, release: str, params: dict[str, str], environment: str, rows: Mapping[str, Any]) -> int:
        version = Release.parse(release).version
        tree = {
            "commit_hash": commits[version],
            "date": seconds[version] * 1000,
            "durations": {},
            "env_name": environment,
            "env_vars": {},
            "params": machine.facts | params,
            "python": "",
            "requirements": {},
            "result_columns": _COLUMNS,
            "results": rows,
            "version": _RESULTS_VERSION,
        }
        _write(fresh / machine.name / f"{commits[version][:8]}-{environment}.json", tree)
        return 1

    count = 0
    for machine in machines:
        _write(fresh / machine.name / "machine.json", machine.facts | {"version": _MACHINE_VERSION})
        bases = baselines(machine)
        for recorded in machine.releases:
            rows = {
                name: [[value], [], figures.version]
                for case, figures in recorded.figures.items()
                for name, value in numbers(case, figures, bases).items()
            }
            count += add(machine, recorded.release, {"wheel": recorded.wheel}, environment_name(recorded.wheel), rows)
        for wheel, point in machine.costs:
            place = {"wheel": wheel, "block": point.block}
            count += add(machine, point.release, place, f"{environment_name(wheel)}-{point.block}", cost_rows(point))
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return count


def environment_name(wheel: str) -> str:
    """The name asv has for where a wheel's line was run: constant over releases, or `asv compare` would pair nothing."""
    return ENVIRONMENT if wheel == "default" else f"{ENVIRONMENT}-{wheel}"


def _in_order(names: Sequence[str], table: Table) -> Iterator[tuple[str, str]]:
    """Each release with the name of its line, oldest first; of one version's builds the default wheel first."""
    placed = []
    for place, line in enumerate(stored_releases.lines(names, table)):
        wheel = stored_releases.wheel(line[0], table)
        if place > 0 and wheel == "default":  # CPU wheels beside default wheels of the same versions.
            wheel = Release.parse(line[0]).build or wheel
        placed += [(Release.parse(name).key[:-1], place, name, wheel) for name in line]
    for _, _, name, wheel in sorted(placed):
        yield name, wheel


def _write(path: Path, tree: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tree, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8")
