"""Releases of torch: their names, their order, and the table of those that replaydrift can make an environment for.

A release is named as `torch.__version__` prints it: a version, and the build after a plus sign (`2.14.1+cu130`). On a
command line `2.14.1` means its default wheel. Standard library only: noxfile.py reads this before anything is installed.
"""

from __future__ import annotations

import bisect
import datetime as dt
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from replaydrift.errors import ReleaseError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE_FILE: Final = "torch-releases.toml"
SCHEMA: Final = 1
_NAME: Final = re.compile(
    r"(?P<numbers>\d+\.\d+\.\d+)"
    r"(?P<before>(?P<stage>a|b|rc)(?P<serial>\d+)|\.dev(?P<day>\d+))?"
    r"(?:\+(?P<build>[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*))?",
)
# What comes before a release sorts before it: a nightly, then alpha, beta, candidate, then the release itself.
_STAGES: Final = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4}


@dataclass(frozen=True, slots=True)
class Release:
    """A torch release: `version` such as `2.14.1`; `build` such as `cu130`, or None where the default wheel is meant."""

    version: str
    build: str | None = None

    @classmethod
    def parse(cls, text: str) -> Release:
        """The release that `text` names; ReleaseError where it has not the form of one."""
        match = _NAME.fullmatch(text.strip())
        if match is None:
            raise ReleaseError(
                f"{text!r} is no torch release: expected a form such as '2.14.1', '2.14.1+cu126' or '2.16.0.dev20261101'",
            )
        return cls(match["numbers"] + (match["before"] or ""), match["build"])

    def __str__(self) -> str:
        return self.version if self.build is None else f"{self.version}+{self.build}"

    @property
    def key(self) -> tuple[tuple[int, ...], int, int, str]:
        """What releases are ordered by: version, how far before its release, then the build."""
        match = _NAME.fullmatch(self.version)
        assert match is not None
        stage = "dev" if match["day"] else match["stage"] or ""
        numbers = tuple(int(part) for part in match["numbers"].split("."))
        return numbers, _STAGES[stage], int(match["day"] or match["serial"] or 0), self.build or ""

    def is_met_by(self, printed: str) -> bool:
        """True where a torch that prints `printed` is what this names; without a build any build will do."""
        found = Release.parse(printed)
        return found.version == self.version and self.build in (None, found.build)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table; sizes in megabytes, None where nobody established them."""

    version: str
    date: dt.date
    cuda: str
    driver: str
    pythons: tuple[tuple[int, int], ...]
    builds: tuple[str, ...] = ()
    download_mb: int | None = None
    kept_mb: int | None = None
    default: bool = False

    @property
    def default_build(self) -> str:
        """The build of the default wheel: `cu130` for CUDA 13.0."""
        return "cu" + self.cuda.replace(".", "")


@dataclass(frozen=True, slots=True)
class Table:
    """torch-releases.toml: its releases, oldest first, and the sizes of a CPU wheel in megabytes."""

    entries: tuple[Entry, ...]
    cpu_download_mb: int | None = None
    cpu_kept_mb: int | None = None

    def find(self, version: str) -> Entry | None:
        """The row of this version; None for a nightly or any other that the table does not list."""
        return next((entry for entry in self.entries if entry.version == version), None)

    @property
    def defaults(self) -> tuple[str, ...]:
        """The versions that run where none is named."""
        return tuple(entry.version for entry in self.entries if entry.default)

    def known(self, text: str) -> Release:
        """The release that `text` names; ReleaseError, with the nearest known, where the table lacks it (nightlies may)."""
        try:
            release = Release.parse(text)
        except ReleaseError as error:
            near = self._near(text)
            raise ReleaseError(f"{error}; near it are {', '.join(near)}" if near else str(error)) from None
        if self.find(release.version) is None and ".dev" not in release.version:
            raise ReleaseError(
                f"{text!r} is not in {TABLE_FILE}: near it are {', '.join(self._near(text))}. "
                "Add a row for a new release of torch, or run an interpreter that has it: replaydrift run --python PATH",
            )
        return release

    def _near(self, text: str) -> list[str]:
        """Three known versions round the place where this one would stand; the newest where it has no number."""
        numbers = tuple(int(part) for part in re.findall(r"\d+", text)[:3])
        keys = [Release(entry.version).key[0] for entry in self.entries]
        place = bisect.bisect_left(keys, (*numbers, 0, 0)[:3]) if numbers else len(keys)
        start = max(0, min(place - 1, len(keys) - 3))
        return [entry.version for entry in self.entries[start : start + 3]]


def read_table(path: Path | None = None) -> Table:
    """The table in `path`, by default torch-releases.toml here or in the checkout that this package runs from.

    ReleaseError where the file is not there, or a row lacks a field or has one of the wrong form.
    """
    path = path or _table_file()
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReleaseError(
            f"{str(path)!r} cannot be read as the table of releases ({error}): restore it from the repository",
        ) from error
    if tree.get("schema") != SCHEMA:
        raise ReleaseError(
            f"{str(path)!r} has schema {tree.get('schema')!r}, expected {SCHEMA}: upgrade replaydrift to read it",
        )
    cpu = tree.get("cpu", {})
    entries = tuple(_entry(row, path) for row in tree.get("releases", []))
    entries = tuple(sorted(entries, key=lambda entry: order(entry.version)))
    return Table(entries, cpu.get("download_mb"), cpu.get("kept_mb"))


def order(text: str) -> tuple[tuple[int, ...], int, int, str]:
    """What to sort names of releases by: `sorted(names, key=order)` is oldest first."""
    return Release.parse(text).key


def is_name(text: str) -> bool:
    """True where the text names a release."""
    try:
        Release.parse(text)
    except ReleaseError:
        return False
    return True


def _table_file() -> Path:
    here, beside = Path(TABLE_FILE), Path(__file__).resolve().parents[2] / TABLE_FILE
    return here if here.is_file() or not beside.is_file() else beside


def _entry(row: Mapping[str, Any], path: Path) -> Entry:
    try:
        return Entry(
            version=_version(row["version"]),
            date=_checked(row["date"], dt.date),
            cuda=_checked(row["cuda"], str),
            driver=_checked(row["driver"], str),
            pythons=tuple(_python(text) for text in row["pythons"]),
            builds=_names(row.get("builds", [])),
            download_mb=row.get("download_mb"),
            kept_mb=row.get("kept_mb"),
            default=row.get("default", False),
        )
    except (KeyError, TypeError, ValueError, ReleaseError) as error:
        name = row.get("version", row)
        raise ReleaseError(f"{str(path)!r}: the row {name!r} is no release ({error}): mend or remove it") from error


def _version(text: str) -> str:
    release = Release.parse(text)
    if release.build is not None:
        raise ReleaseError(f"{text!r} has a build, expected a version alone")
    return release.version


def _checked(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _names(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_checked(value, str) for value in values)


def _python(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
