"""May I upgrade? All changes between two releases on one machine, what explains them, and the exit code.

Everything here is a function of stored results, the catalogue and explanations.toml; renderers in `report` only print it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from replaydrift import releases, stored_releases
from replaydrift.changes import NEWS, QUIET, UNDECIDED, Change, compare
from replaydrift.costs import explained
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.explanations import Explanation, explaining, state, still_true
from replaydrift.store import Store, Sweep
from replaydrift.verdicts import settled

# What a person wants to see first when two environments differ: torch or the toolkit?
_FACTS: Final = (
    ("CUDA", ("torch", "cuda")),
    ("driver", ("gpu", "driver")),
    ("Python", ("python", "version")),
    ("cuBLAS", ("libraries", "cublas")),
    ("cuDNN", ("libraries", "cudnn")),
    ("NCCL", ("libraries", "nccl")),
    ("triton", ("libraries", "triton")),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One change with the entries that explain it; `cause` is what findings of one cause share."""

    change: Change
    explained_by: tuple[Explanation, ...] = ()

    @property
    def cause(self) -> str:
        """The explanation, or else what both sides said: changes of one cause are printed together."""
        if self.explained_by:
            return " ".join(entry.why for entry in self.explained_by)
        return f"{self.change.change}: {state(self.change, 'before')} → {state(self.change, 'after')}"


@dataclass(frozen=True)
class Check:
    """The answer to "may I upgrade from `old` to `new`?" for one machine.

    `same` counts cases that ran on both and did the same; `skipped` are those that both releases skip, of which nothing is known.
    `costs` is None where they were not asked about or neither release has any; `costs_explained` has the entries that explain a
    changed cost, by its name.
    """

    machine: str
    engine: str
    gpu: str
    old: str
    new: str
    findings: tuple[Finding, ...]
    same: int
    skipped: tuple[Change, ...] = ()
    stale: tuple[Explanation, ...] = ()
    environment: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    costs: CostCheck | None = None
    costs_explained: Mapping[str, tuple[Explanation, ...]] = field(default_factory=dict)

    @property
    def unexplained(self) -> tuple[Finding, ...]:
        """The news that no entry of explanations.toml covers."""
        return tuple(finding for finding in self.findings if finding.change.change in NEWS and not finding.explained_by)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Cases about which nothing can be said: not run, broken, or not comparable.

        One that the old release alone skips is not among them: it asks for what that release did not have, so nobody relies on it.
        """
        return tuple(finding for finding in self.findings if finding.change.change in UNDECIDED and not is_new(finding.change))

    @property
    def unexplained_costs(self) -> tuple[CostFinding, ...]:
        """The changes of costs that must be explained and are not."""
        return tuple(finding for finding in self.costs.news if not self.costs_explained.get(finding.name)) if self.costs else ()

    @property
    def costs_undecided(self) -> bool:
        """True where costs were measured and the gate has no answer to something it asks."""
        return self.costs is not None and self.costs.cannot_tell

    @property
    def nothing_ran(self) -> bool:
        """True where every case that was asked about is skipped on both releases."""
        return bool(self.skipped) and not self.same and not self.findings

    @property
    def exit_code(self) -> int:
        """0 nothing unexplained, 1 an unexplained change or an explanation that matches nothing any more, 2 cannot tell."""
        if self.unexplained or self.unexplained_costs or self.stale:
            return 1
        return 2 if self.undecided or self.costs_undecided or self.nothing_ran else 0


def check(
    store: Store,
    machine: str,
    old: str,
    new: str,
    cases: Iterable[str] = (),
    entries: Sequence[Explanation] = (),
    *,
    only: bool = False,
    read: Callable[[str], Sweep] | None = None,
    costs: CostStore | None = None,
) -> Check:
    """The check of two stored releases (full names) of a machine.

    `cases` are names that must be there on both sides; with `only`, no other case is looked at. `read` gives a release's
    results to a caller that holds them already; without it each is read once. Without `costs` nothing is said about them.
    """
    read = read or cache(lambda release: store.read(machine, release))
    before, after = read(old), read(new)
    wanted = frozenset(cases)
    findings = []
    for change in changes_between(before, after, wanted):
        if only and change.case not in wanted:
            continue
        path = explaining(change, machine, entries, lambda start, end: within(start, end, old, new))
        findings.append(Finding(change, path))
    # Entries of several cases share a step, whose costs are compared once.
    whole = cache(lambda start, end: _costs_between(costs, machine, start, end, None))
    priced = _costs_between(costs, machine, old, new, wanted) if only else whole(old, new)
    return Check(
        machine=machine,
        engine=after.environment.engine,
        gpu=after.environment.gpu,
        old=old,
        new=new,
        findings=tuple(finding for finding in findings if finding.change.change not in QUIET),
        same=sum(finding.change.change == "same" for finding in findings),
        skipped=tuple(finding.change for finding in findings if finding.change.change == "skipped"),
        stale=tuple(
            entry
            for entry in entries
            if (entry.case in wanted or not only) and _is_stale(entry, store.releases(machine), read, machine, old, new, whole)
        ),
        environment=environment_changes(before, after),
        costs=priced,
        costs_explained={
            finding.name: explained.explaining(finding, machine, entries, lambda start, end: within(start, end, old, new))
            for finding in (priced.news if priced else ())
        },
    )


def changes_between(before: Sweep, after: Sweep, cases: Iterable[str] = ()) -> list[Change]:
    """The change of every case that either side has or `cases` names, the most dangerous first."""
    names = {*before.cases, *after.cases, *cases}
    return sorted((compare(name, before.cases.get(name), after.cases.get(name)) for name in names), key=lambda change: change.rank)


def environment_changes(before: Sweep, after: Sweep) -> dict[str, tuple[str, str]]:
    """What else than torch itself differs, by name: the toolkit of the wheel, the driver, libraries."""
    if after.environment.engine == "model":
        return {}  # The model runs none of them: torch's Python is all that differs.
    found = {}
    for name, path in _FACTS:
        old, new = _at(before.environment.facts, path), _at(after.environment.facts, path)
        if old != new and None not in (old, new):  # A fact that a side does not have says nothing.
            found[name] = (str(old), str(new))
    return found


def _costs_between(costs: CostStore | None, machine: str, old: str, new: str, subjects: frozenset[str] | None) -> CostCheck | None:
    """The costs of two releases; None where they are not asked about, or there are none."""
    if costs is None or not costs.blocks(machine):
        return None
    from replaydrift.costs.gate import costs_between  # noqa: PLC0415  it brings scipy, which takes seconds and most stores do not need

    return costs_between(costs, machine, old, new, subjects)


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    node: Any = tree
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def is_new(change: Change) -> bool:
    """True where the old release skips a case and the new one runs it: it asks for what the old one did not have."""
    old, new = (settled(record.attempts) if record else () for record in (change.old, change.new))
    return bool(old and new) and old[0].outcome.kind == "skipped" and {attempt.outcome.kind for attempt in new}.isdisjoint({"skipped", "broken"})


def within(start: str, end: str, old: str, new: str) -> bool:
    """True where the step from `start` to `end` lies in the range from `old` to `new`, whatever the builds."""
    first, last, low, high = (releases.Release.parse(name).key[:-1] for name in (start, end, old, new))
    return low <= first and last <= high


def _is_stale(
    entry: Explanation, there: Iterable[str], read: Callable[[str], Sweep], machine: str, old: str, new: str,
    costs: Callable[[str, str], CostCheck | None],
) -> bool:  # fmt: skip
    """True where both releases of an entry in range have its case, and the change it explains is no longer there.

    A store that lacks the case (another library's, or a sweep of a few cases) says nothing about its explanation.
    """
    if not entry.speaks_of(machine) or not within(entry.start, entry.end, old, new):
        return False
    start, end = stored_releases.stored(entry.start, there), stored_releases.stored(entry.end, there)
    if start is None or end is None:
        return False
    if entry.change == explained.CHANGE:
        priced = costs(start, end)
        return priced is not None and explained.is_stale(entry, priced)
    before, after = read(start).cases.get(entry.case), read(end).cases.get(entry.case)
    return before is not None and after is not None and not still_true(entry, compare(entry.case, before, after))
