"""Works from which release? The lowest stored release from which a case is right on every later one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replaydrift import releases, stored_releases
from replaydrift.records import CaseRecord
from replaydrift.store import Store
from replaydrift.verdicts import settled, summarise


@dataclass(frozen=True, slots=True)
class CaseFloor:
    """One case: the release it works from (None for none), and what the last release before that did instead."""

    case: str
    release: str | None
    before: str


@dataclass(frozen=True)
class Floor:
    """The floors of several cases on one machine; `together` is the release from which all of them work."""

    machine: str
    engine: str
    releases: tuple[str, ...]
    cases: tuple[CaseFloor, ...]

    @property
    def together(self) -> str | None:
        """The highest of the floors; None where one of the cases has none."""
        floors = [case.release for case in self.cases]
        return None if not floors or None in floors else max((name for name in floors if name), key=releases.order)


def floor_of(store: Store, machine: str, cases: Iterable[str]) -> Floor:
    """The floors of these cases over the default line of a machine's releases."""
    line = stored_releases.lines(sorted(store.releases(machine), key=releases.order))[0]
    sweeps = [store.read(machine, name) for name in line]
    found = [_case_floor(name, [(sweep.environment.release, sweep.cases.get(name)) for sweep in sweeps]) for name in cases]
    return Floor(machine, sweeps[-1].environment.engine, tuple(line), tuple(found))


def works(record: CaseRecord | None) -> bool:
    """True where every sound attempt gave the right values."""
    return record is not None and all(attempt.outcome.kind == "correct" for attempt in settled(record.attempts))


def _case_floor(case: str, history: list[tuple[str, CaseRecord | None]]) -> CaseFloor:
    floor, before = None, ""
    for release, record in reversed(history):
        if not works(record):
            summary = summarise(record)
            before = f"{release}: {summary.rates or 'not run'}"
            break
        floor = release
    return CaseFloor(case, floor, before)
