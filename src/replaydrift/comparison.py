"""Two stores side by side: my GPU against the reference. Machines differ by design, so this lists, and gates nothing."""

from __future__ import annotations

from dataclasses import dataclass

from replaydrift import releases, stored_releases
from replaydrift.changes import QUIET, Change
from replaydrift.check import changes_between, environment_changes
from replaydrift.errors import StoreError
from replaydrift.store import Store, Sweep


@dataclass(frozen=True)
class Comparison:
    """What differs between two machines on one release; `same` counts the cases that do not."""

    left: Sweep
    right: Sweep
    differing: tuple[Change, ...]
    same: int
    environment: dict[str, tuple[str, str]]
    skipped: int = 0


def compare_stores(left: Store, left_machine: str, right: Store, right_machine: str, release: str | None = None) -> tuple[Comparison, ...]:
    """A comparison for each release that both have (or of `release` alone), oldest first.

    A build stands for its release: `2.13.0+cpu` of one store is set beside `2.13.0+cu130` of the other. StoreError lists the
    releases of both where they have none in common, or not the one asked for; engines that differ are refused, since the CPU
    model is held against a GPU by `replaydrift agreement`.
    """
    ours, theirs = left.releases(left_machine), right.releases(right_machine)
    pairs = {}
    for name in sorted(ours, key=releases.order):
        for other in sorted(theirs, key=releases.order):
            if name == other or (_version(name) == _version(other) and name not in theirs):
                pairs[name] = other
    if release is not None:
        asked = stored_releases.resolve(release, ours)
        pairs = {name: other for name, other in pairs.items() if name == asked}
    if not pairs:
        raise StoreError(
            f"no release in common: {left_machine!r} in {str(left.root)!r} has {', '.join(ours)}; "
            f"{right_machine!r} in {str(right.root)!r} has {', '.join(theirs)}: run one of them on both",
        )
    return tuple(_compared(left.read(left_machine, a), right.read(right_machine, b)) for a, b in pairs.items())


def _version(name: str) -> str:
    return releases.Release.parse(name).version


def _compared(left: Sweep, right: Sweep) -> Comparison:
    if left.environment.engine != right.environment.engine:
        raise StoreError(
            f"engines differ: {left.environment.engine!r} on {left.environment.machine!r}, {right.environment.engine!r} on "
            f"{right.environment.machine!r}: a modelled result is no machine's; use `replaydrift agreement` for that",
        )
    changes = changes_between(left, right)
    environment = {"GPU": (left.environment.gpu, right.environment.gpu)} | environment_changes(left, right)
    return Comparison(
        left,
        right,
        tuple(c for c in changes if c.change not in QUIET),
        sum(c.change == "same" for c in changes),
        environment,
        sum(c.change == "skipped" for c in changes),
    )
