"""Both releases of an upgrade, run in turns, and whatever differs run again on both sides, before anybody is told of a change.

Every visit to a release is a sweep of one attempt a case: old, new, then new, old, and so on, so that what drifts on the machine
meets both sides alike. Attempts are only ever added: dropping one that disagreed is how a flaky case would pass as a change.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from replaydrift.catalogue import Catalogue
from replaydrift.changes import NEEDED, NEWS, Change, compare
from replaydrift.errors import RunError
from replaydrift.files import to_text, write_whole
from replaydrift.library import Case
from replaydrift.records import CaseRecord, Environment
from replaydrift.releases import Release
from replaydrift.store import Store, Sweep
from replaydrift.sweep import Watcher, Wishes, check_before_writing, sweep

# What differs runs so often again on both sides; what is mixed even then runs so often in all.
CONFIRMING: Final = NEEDED
MIXED: Final = 7
FOLDER: Final = ".upgrade"
_HEADER: Final = "upgrade.json"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of an upgrade: the release as it was asked for, and the Python that has it."""

    release: str
    python: str


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What was run: machine, both releases in full, and the cases that ran again since they differed or were mixed."""

    machine: str
    old: str
    new: str
    again: tuple[str, ...]
    mixed: tuple[str, ...]


def upgrade(
    old: Side, new: Side, wishes: Wishes, catalogue: Catalogue, cases: Iterable[Case], store: Store, watcher: Watcher,
    say: Callable[[str], None] = lambda _: None, then: Callable[[], None] = lambda: None,
) -> Upgraded:  # fmt: skip
    """Run the cases on both sides, `wishes.attempts` times and what differs more often, and put the records into the store.

    Before they are put there `then` is done; where it is stopped the upgrade is, and goes on there.

    The store's earlier records of these cases are replaced, at the very end. What ended before a stop is kept in a folder of
    the store until then: `wishes.resume` goes on from it, `wishes.fresh` discards it. RunError where neither is said, where the
    two sides do not run on the same engine and GPU, or are the same release.
    """
    chosen = tuple(cases)
    visits = _Visits((old, new), wishes, catalogue, chosen, store, watcher)
    visits.take_up()
    try:
        names = [case.name for case in chosen]
        for number in range(1, wishes.attempts + 1):
            say(f"round {number} of {wishes.attempts}: {len(names)} case(s) on torch {old.release} and {new.release}")
            visits.round(names)
        again = [change.case for change in visits.changes(names) if change.change in NEWS or change.change == "flaky"]
        if again:
            say(f"{len(again)} case(s) differ or are mixed, {CONFIRMING} more attempts on both sides: {', '.join(again)}")
        for _ in range(CONFIRMING):
            visits.round(again)
        mixed = [change.case for change in visits.changes(again) if change.change == "flaky"]
        more = max(0, MIXED - wishes.attempts - CONFIRMING)
        if mixed and more:
            say(f"{len(mixed)} case(s) are mixed, {more} more attempts on both sides: {', '.join(mixed)}")
        for _ in range(more):
            visits.round(mixed)
        then()
    except KeyboardInterrupt:
        raise RunError("stopped between two visits; what ended is kept: go on with the same command and --resume") from None
    before, after = visits.keep()
    return Upgraded(before.machine, before.release, after.release, tuple(again), tuple(mixed))


@dataclass
class _Visits:
    """The visits of one upgrade, each in a store of its own below the real one until all are there."""

    sides: tuple[Side, Side]
    wishes: Wishes
    catalogue: Catalogue
    cases: Sequence[Case]
    store: Store
    watcher: Watcher
    rounds: int = 0
    environments: dict[Side, Environment] = field(default_factory=dict)
    records: dict[Side, dict[str, CaseRecord]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the visits are kept until the end: a folder an upgrade, so that two unfinished ones do not meet."""
        old, new = (Release.parse(side.release) for side in self.sides)
        return self.store.root / FOLDER / f"{old}-{new}"

    def take_up(self) -> None:
        """Begin, or go on where the same upgrade was stopped; RunError where a person has to say which."""
        if self.sides[0].release == self.sides[1].release:
            raise RunError(f"both sides are torch {self.sides[0].release}: expected two releases, the old and the new one")
        path, header = self.folder / _HEADER, self._header()
        if self.wishes.fresh:
            self._discard()
        if path.is_file() and any(other.is_file() and other != path for other in self.folder.rglob("*")):
            then = _read(path)
            differing = sorted(key for key in {*then, *header} if then.get(key) != header.get(key))
            if differing:
                raise RunError(
                    f"{str(self.folder)!r} is of an upgrade that differs in {', '.join(differing)}: "
                    "ask for the same as then with --resume, or discard it with --fresh",
                )
            if not self.wishes.resume:
                raise RunError(
                    f"{str(self.folder)!r} holds an upgrade that did not end: go on with --resume, or discard it with --fresh",
                )
        write_whole(path, to_text(header))

    def _header(self) -> dict[str, Any]:
        """What must be the same for a stopped upgrade to go on."""
        tree = {
            "sides": [[side.release, side.python] for side in self.sides],
            "engine": self.wishes.engine,
            "machine": self.wishes.machine,
            "attempts": self.wishes.attempts,
            "sizes": dict(self.wishes.sizes),
            "limit_s": self.wishes.limit_s,
            "cases": {case.name: case.version for case in self.cases},
        }
        return dict(json.loads(json.dumps(tree)))

    def round(self, names: Sequence[str]) -> None:
        """One attempt more of these cases on both sides; the side that was second begins."""
        if not names:
            return
        self.rounds += 1
        for side in self.sides if self.rounds % 2 else reversed(self.sides):
            visited = self._visit(side, names)
            self._check(side, visited.environment, names)
            self.environments[side] = visited.environment
            kept = self.records.setdefault(side, {})
            for name in names:
                kept[name] = _added(kept.get(name), visited.cases[name])

    def _visit(self, side: Side, names: Sequence[str]) -> Sweep:
        """One attempt of these cases on one side: run now, or before a stop."""
        there = Store(self.folder / f"{self.rounds:02}-{'old' if side == self.sides[0] else 'new'}")
        if not there.machines():
            wishes = replace(self.wishes, python=side.python, release=side.release, attempts=1, resume=True, fresh=False)
            swept = sweep(wishes, self.catalogue, [case for case in self.cases if case.name in set(names)], there, self.watcher)
            if swept.stopped:
                raise RunError(f"stopped by {swept.stopped} after a visit; what ended is kept: go on with the same command and --resume")
        machine = there.machine(None)
        return there.read(machine, *there.releases(machine))

    def _check(self, side: Side, environment: Environment, names: Sequence[str]) -> None:
        """RunError where this visit cannot stand beside the others, or the store would refuse it in the end."""
        earlier = self.environments.get(side)
        if earlier is None:
            check_before_writing(self.store, environment, set(names))
        elif earlier.facts != environment.facts:
            differing = sorted(key for key in {*earlier.facts, *environment.facts} if earlier.facts.get(key) != environment.facts.get(key))
            raise RunError(
                f"torch {environment.release} ran in an environment that differs in {', '.join(differing)} from its visits before: "
                "begin again with --fresh",
            )
        other = self.environments.get(self.sides[side == self.sides[0]])
        if other is None:
            return
        if other.release == environment.release:
            raise RunError(f"both sides import torch {environment.release}: name the interpreters of two releases with --python")
        if (other.machine, other.place) != (environment.machine, environment.place):
            raise RunError(
                f"the two sides do not run on one machine: torch {other.release} ran with engine {other.engine!r} on {other.gpu!r}, "
                f"torch {environment.release} with engine {environment.engine!r} on {environment.gpu!r}; "
                "give both a build that runs here, or ask for --engine model, with --fresh",
            )

    def changes(self, names: Iterable[str]) -> list[Change]:
        """The change of each of these cases as it stands now, even on a single attempt a side."""
        old, new = (self.records.get(side, {}) for side in self.sides)
        return [compare(name, old.get(name), new.get(name), needed=1) for name in names]

    def keep(self) -> tuple[Environment, Environment]:
        """Both environments, once all records are in the store; the visits are removed then."""
        for side in self.sides:
            self.store.write(self.environments[side], self.records[side].values())
        self._discard()
        old, new = self.sides
        return self.environments[old], self.environments[new]

    def _discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.parent.is_dir() and not any(self.folder.parent.iterdir()):
            self.folder.parent.rmdir()


def _added(record: CaseRecord | None, more: CaseRecord) -> CaseRecord:
    """One record of all attempts."""
    return more if record is None else replace(record, attempts=(*record.attempts, *more.attempts))


def _read(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{str(path)!r} cannot be read ({error}): discard the upgrade with --fresh") from error
    return tree if isinstance(tree, dict) else {}
