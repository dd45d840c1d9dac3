"""Which of the stored releases a name means, and which of them follow one another. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from replaydrift.errors import ReleaseError
from replaydrift.releases import Release, Table, order, read_table


def stored(text: str, names: Iterable[str], table: Table | None = None) -> str | None:
    """The one of the stored names that `text` means, or None where it is not there or more than one may be meant."""
    try:
        return resolve(text, names, table)
    except ReleaseError:
        return None


def resolve(text: str, names: Iterable[str], table: Table | None = None) -> str:
    """The one of the stored names that `text` means.

    A version alone means its default wheel; where that is not stored, the only build that is. ReleaseError where nothing
    is stored, or where several builds are and none is the default.
    """
    release = Release.parse(text)
    there = sorted(names, key=order)
    builds = [name for name in there if release.is_met_by(name)]
    if release.build is None and len(builds) > 1:
        default = [name for name in builds if _is_default(name, table)]
        builds = default or builds
    if len(builds) == 1:
        return builds[0]
    if builds:
        raise ReleaseError(
            f"{text!r} is stored in {len(builds)} builds and none is the default wheel: say which of {', '.join(builds)}",
        )
    same = [name for name in there if Release.parse(name).version == release.version]
    listed = ", ".join(same or there) or "none"
    raise ReleaseError(
        f"no results of release {text!r}: those stored are {listed}. Make them: nox -s matrix -- --release {text}",
    )


def wheel(text: str, table: Table | None = None) -> str:
    """The line a release belongs to: `default` for a default wheel, else its build.

    Default wheels form one line although their CUDA changes from release to release. A CPU wheel stands in it as well: it
    runs nothing but the CPU model, where it takes the place of the default wheel.
    """
    release = Release.parse(text)
    return "default" if release.build in (None, "cpu") or _is_default(text, table) else release.build or ""


def same_line(one: str, other: str, table: Table | None = None) -> bool:
    """True where two releases are steps of one line, so that what changed between them is not the build's doing."""
    return wheel(one, table) == wheel(other, table)


def lines(names: Iterable[str], table: Table | None = None) -> list[list[str]]:
    """The names as lines, each oldest first, that of the default wheels first.

    Where a version is stored both as its default wheel and as a CPU wheel, the CPU wheel goes to a line of its own.
    """
    by_wheel: dict[str, list[str]] = {"default": []}
    versions = set()
    for name in sorted(names, key=lambda name: (not _is_default(name, table), order(name))):
        release = Release.parse(name)
        line = wheel(name, table)
        if line == "default" and release.version in versions:
            line = release.build or line
        if line == "default":
            versions.add(release.version)
        by_wheel.setdefault(line, []).append(name)
    in_order = sorted(by_wheel, key=lambda line: (line != "default", line))
    return [sorted(by_wheel[line], key=order) for line in in_order if by_wheel[line]]


def _is_default(text: str, table: Table | None) -> bool:
    """True for a name without a build, and for the build of its release's default wheel."""
    release = Release.parse(text)
    entry = (table or _own_table()).find(release.version)
    return release.build is None or (entry is not None and release.build == entry.default_build)


@cache
def _own_table() -> Table:
    return read_table()
