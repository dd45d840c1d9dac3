"""The store: results/verdicts/<machine>/<release>/, one readable JSON file a group and `_environment.json` beside them.

Files are written whole (temporary file, then rename), sorted and indented, so that a new release arrives as a diff that a
person can review. Only this module knows the layout of a file; `files` knows how one is written and read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydrift import records, releases
from replaydrift.errors import StoreError
from replaydrift.files import read_tree, to_text, write_whole
from replaydrift.records import CaseRecord, Environment

ENVIRONMENT_FILE = "_environment.json"
JOURNAL_FILE = ".journal.jsonl"  # Of a sweep under way; `journal` alone reads and writes it.
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Sweep:
    """All that one machine knows of one release: its environment, and the records of its cases by full name."""

    environment: Environment
    cases: Mapping[str, CaseRecord]


@dataclass(frozen=True)
class Store:
    """A folder of results. Reading never changes it; a file that cannot be read raises StoreError naming the file."""

    root: Path

    @property
    def verdicts(self) -> Path:
        """The folder of verdicts; that of costs stands beside it."""
        return self.root / "verdicts"

    def machines(self) -> tuple[str, ...]:
        """The machines that have results, sorted."""
        if not self.verdicts.is_dir():
            return ()
        return tuple(sorted(folder.name for folder in self.verdicts.iterdir() if folder.is_dir() and self._releases(folder)))

    def machine(self, name: str | None) -> str:
        """`name`, or the only machine there is; StoreError lists the machines where that leaves a choice."""
        known = self.machines()
        listed = ", ".join(known) or "none"
        if name is None:
            if len(known) == 1:
                return known[0]
            what = "has no results yet" if not known else f"has results of {len(known)} machines ({listed})"
            todo = "run `nox -s matrix` first" if not known else "say which with --machine NAME"
            raise StoreError(f"the store {str(self.root)!r} {what}: {todo}")
        if checked_machine(name) not in known:
            raise StoreError(f"no results of machine {name!r} in {str(self.root)!r}: machines there are {listed}")
        return name

    def releases(self, machine: str) -> tuple[str, ...]:
        """The releases that have results on this machine, in no particular order but a stable one."""
        folder = self.verdicts / checked_machine(machine)
        names = sorted(self._releases(folder))
        for name in names:
            if not releases.is_name(name):
                raise StoreError(f"{str(folder / name)!r} is no folder of a torch release, such as '2.14.1+cu130': move it out of the store")
        return tuple(names)

    @staticmethod
    def _releases(folder: Path) -> list[str]:
        if not folder.is_dir():
            return []
        found = []
        for child in folder.iterdir():
            if (child / ENVIRONMENT_FILE).is_file():
                found.append(child.name)
            elif any(child.glob("*.json")) and not (child / JOURNAL_FILE).is_file():
                # With a journal it is a sweep that was killed while it stored its very first results: --resume ends it.
                raise StoreError(
                    f"{str(child)!r} holds verdicts but no {ENVIRONMENT_FILE}: restore that file, or delete the folder and run again"
                )
        return found

    def folder(self, machine: str, release: str) -> Path:
        """Where the results of this release on this machine are, or would be."""
        if "/" in release or release.startswith("."):
            raise StoreError(f"{release!r} is no release: expected a form such as '2.14.1+cu130'")
        return self.verdicts / checked_machine(machine) / release

    def read(self, machine: str, release: str) -> Sweep:
        """The results of one release on one machine; StoreError where there are none or a file is damaged or foreign."""
        folder = self.folder(machine, release)
        if not (folder / ENVIRONMENT_FILE).is_file():
            known = ", ".join(self.releases(machine)) or "none"
            raise StoreError(f"no results of {release!r} on machine {machine!r}: releases there are {known}")
        environment = _environment(folder / ENVIRONMENT_FILE)
        cases: dict[str, CaseRecord] = {}
        for path in sorted(folder.glob("*.json")):
            if path.name != ENVIRONMENT_FILE:
                cases.update(_group(path, environment))
        return Sweep(environment, cases)

    def sweeps(self) -> Iterator[Sweep]:
        """Everything stored, one release at a time: machine by machine, releases oldest first."""
        for machine in self.machines():
            for release in sorted(self.releases(machine), key=releases.order):
                yield self.read(machine, release)

    def write(self, environment: Environment, cases: Iterable[CaseRecord]) -> tuple[Path, ...]:
        """The files written: records of some cases are put among what their groups hold already, then the environment.

        StoreError, with nothing changed, where the machine's folder holds results of another engine or GPU, or where records
        of the same release stay that were made in another environment.
        """
        folder = self.folder(environment.machine, environment.release)
        fresh: dict[str, dict[str, CaseRecord]] = {}
        for record in cases:
            fresh.setdefault(record.case.split("/")[0], {})[record.case] = record
        self.check_environment(environment, {name for group in fresh.values() for name in group})
        written = []
        for group in sorted(fresh):
            path = folder / f"{group}.json"
            kept = dict(_group(path, environment)) if path.is_file() else {}
            merged = kept | fresh[group]
            tree = {
                "schema": records.SCHEMA,
                "group": group,
                "machine": environment.machine,
                "engine": environment.engine,
                "release": environment.release,
                "cases": {name.split("/")[1]: records.case_to_json(merged[name]) for name in sorted(merged)},
            }
            written.append(write_whole(path, to_text(tree)))
        written.append(write_whole(folder / ENVIRONMENT_FILE, to_text({"schema": records.SCHEMA, **records.environment_to_json(environment)})))
        return tuple(written)

    def check_place(self, environment: Environment) -> None:
        """Nothing where this machine's folder holds the same engine and GPU; else StoreError. One folder, one place."""
        for release in self.releases(environment.machine):
            other = _environment(self.folder(environment.machine, release) / ENVIRONMENT_FILE)
            if other.place != environment.place:
                raise StoreError(
                    f"machine {environment.machine!r} holds results of engine {other.engine!r} on {other.gpu!r} ({release}), "
                    f"but this run is engine {environment.engine!r} on {environment.gpu!r}: name another machine with --machine NAME",
                )

    def check_environment(self, environment: Environment, names: Collection[str]) -> None:
        """Nothing where records of these cases may be written under this environment; else StoreError.

        A record of another case that would stay beside them must not get an environment that is not its own.
        """
        folder = self.folder(environment.machine, environment.release)
        self.check_place(environment)
        if not (folder / ENVIRONMENT_FILE).is_file():
            return
        old = _environment(folder / ENVIRONMENT_FILE)
        differing = sorted(key for key in {*old.facts, *environment.facts} if old.facts.get(key) != environment.facts.get(key))
        if not differing:
            return
        staying = sorted(self.read(environment.machine, environment.release).cases.keys() - set(names))
        if staying:
            raise StoreError(
                f"{str(folder)!r} holds {len(staying)} case(s), such as {staying[0]!r}, from an environment that differs in "
                f"{', '.join(differing)}: run all cases again, or keep these apart with --results DIR or --machine NAME",
            )


def checked_machine(name: str) -> str:
    """The name itself; StoreError where it cannot be a folder's name."""
    if not _MACHINE.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a machine: expected letters, digits, '.', '_' and '-', such as 'h200'")
    return name


def _load(path: Path) -> dict[str, Any]:
    """The JSON object of a file of the current schema; older schemas are brought up to it."""
    return upgrade(read_tree(path, records.SCHEMA))


def upgrade(tree: dict[str, Any]) -> dict[str, Any]:
    """The same content in the current schema. A step a version; version 1 is the first."""
    return tree


def _environment(path: Path) -> Environment:
    tree = _load(path)
    try:
        return records.environment_from_json(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{str(path)!r} is no environment: {error!r}; restore it, or delete the folder and run again") from error


def _group(path: Path, environment: Environment) -> dict[str, CaseRecord]:
    tree = _load(path)
    try:
        group = tree["group"]
        belongs = (group, tree["machine"], tree["engine"], tree["release"])
        cases = {f"{group}/{name}": records.case_from_json(f"{group}/{name}", case) for name, case in tree["cases"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"{str(path)!r} is no group of verdicts: {error!r}; restore it, or delete it and run again") from error
    expected = (path.stem, environment.machine, environment.engine, environment.release)
    if belongs != expected:
        raise StoreError(f"{str(path)!r} belongs elsewhere: it says {belongs}, its place says {expected}; move it to its own folder")
    return cases
