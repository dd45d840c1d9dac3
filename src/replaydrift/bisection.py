"""The first release on which a case's verdict changed, by binary search over releases, and every other step that was seen.

`narrow` is the search itself, `bisect` what it means for a case; neither knows how a release is run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from replaydrift import releases, stored_releases
from replaydrift.catalogue import Catalogue
from replaydrift.changes import NEEDED, NEWS, Change, compare
from replaydrift.errors import ReleaseError, RunError
from replaydrift.library import Case
from replaydrift.plan import make_plan
from replaydrift.records import Attempt, CaseRecord, Environment
from replaydrift.releases import Release, Table
from replaydrift.store import Store
from replaydrift.verdicts import summarise

Seen = TypeVar("Seen")
Result = tuple[Environment, CaseRecord]

# Verdicts that say nothing about the release.
UNSETTLED = frozenset({"flaky", "skipped", "broken", "missing"})


def narrow(
    seen: dict[int, Seen | None],
    differ: Callable[[Seen, Seen], bool],
    look: Callable[[int], Seen | None],
    may: Callable[[int], bool] = lambda _: True,
) -> None:
    """Look at places, and add them to `seen`, until nothing that may be looked at lies between two that differ.

    `seen` has both ends, and what is known already; None stands for a place that cannot be told. One step between n + 1 places
    of which only the ends are known takes at most ceil(log2(n)) looks where every place can be told.
    """
    while (place := _next(seen, differ, may)) is not None:
        seen[place] = look(place)


def _next(seen: Mapping[int, Seen | None], differ: Callable[[Seen, Seen], bool], may: Callable[[int], bool]) -> int | None:
    """The place nearest to the middle of the first interval whose ends differ; None where all are narrow."""
    for start, end in steps(seen, differ):
        open_places = [place for place in range(start + 1, end) if place not in seen and may(place)]
        if open_places:
            return min(open_places, key=lambda place: (abs(2 * place - start - end), place))
    return None


def steps(seen: Mapping[int, Seen | None], differ: Callable[[Seen, Seen], bool]) -> list[tuple[int, int]]:
    """The pairs of places, next to each other among those that can be told, that differ."""
    told = [(place, value) for place, value in sorted(seen.items()) if value is not None]
    return [(one[0], two[0]) for one, two in pairwise(told) if differ(one[1], two[1])]


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of one release: its record with where that came from ('store' or 'run'), or why there is none.

    `untold` is True where the release was asked and gave no answer; one that was left out was not asked.
    """

    release: str
    record: CaseRecord | None = None
    origin: str = ""
    why: str = ""
    untold: bool = False

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`; `missing` where there is no record."""
        return summarise(self.record).verdict


@dataclass(frozen=True, slots=True)
class Step:
    """A change between two releases, with those between them that say nothing."""

    before: Look
    after: Look
    change: Change
    between: tuple[Look, ...] = ()


@dataclass(frozen=True)
class Bisection:
    """The answer: every release in order, the steps of what was searched for, and lesser changes that were seen on the way.

    `by` is 'verdict', or 'details' where both ends have one verdict: then errors, values and warnings are searched.
    """

    case: str
    machine: str
    engine: str
    by: str
    looks: tuple[Look, ...]
    steps: tuple[Step, ...]
    lesser: tuple[Step, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 the one step was found, 1 not monotone, 2 cannot tell."""
        if len(self.steps) > 1:
            return 1
        if not self.steps or self.looks[0].untold or self.looks[-1].untold:
            return 2
        return 2 if any(look.untold for look in self.steps[0].between) else 0

    def looked(self, origin: str) -> tuple[str, ...]:
        """The releases whose record came from the store, or from a run."""
        return tuple(look.release for look in self.looks if look.origin == origin)


def candidates(good: str, bad: str, table: Table, more: Iterable[str] = ()) -> list[str]:
    """The releases from one end to the other, oldest first: default wheels of the table, and `more` (nightlies, given ones)."""
    first, last = sorted((good, bad), key=releases.order)
    if first == last:
        raise ReleaseError(f"--good and --bad are both {good!r}: expected two releases")
    versions = {Release.parse(name).version for name in (good, bad)}
    names = {good, bad}
    for name in (*more, *(entry.version for entry in table.entries)):
        version = Release.parse(name).version
        if version not in versions and releases.order(first) < releases.order(name) < releases.order(last):
            versions.add(version)
            names.add(name)
    return sorted(names, key=releases.order)


def bisect(
    case: Case,
    names: Sequence[str],
    stored: Mapping[str, Result],
    run: Callable[[str], Result],
    at_hand: Callable[[str], bool],
    left_out: Collection[str] = (),
) -> Bisection:
    """The bisection of a case over `names`, oldest first and both ends included.

    `stored` has what needs no run, by name. `run(name)` gives the rest; its ReleaseError leaves that release untold, any other
    error ends the search. `left_out` are never run. Changes lesser than that of a verdict are narrowed only over releases at
    hand, so that they install nothing. RunError where an end is left out and not stored.
    """
    for name in (names[0], names[-1]):
        if name in left_out and name not in stored:
            raise RunError(
                f"an end of the search, torch {name}, is left out and the store has no record of {case.name!r} on it: "
                f"name its interpreter with --python {name}=PATH, or another end",
            )
    known = {place: stored[name] for place, name in enumerate(names) if name in stored}
    read = set(known)
    failed: dict[int, str] = {}
    seen = {place: _told(record) for place, (_, record) in known.items()}

    def look(place: int) -> CaseRecord | None:
        try:
            known[place] = run(names[place])
        except ReleaseError as error:
            failed[place] = str(error)
            return None
        return _told(known[place][1])

    def may(place: int) -> bool:
        return names[place] not in left_out

    def cheaply(place: int) -> bool:
        """Details may be looked for where that installs nothing, or where there is nothing else to look for."""
        return may(place) and (at_hand(names[place]) or not steps(seen, _verdicts_differ))

    for end in (0, len(names) - 1):
        if end not in seen:
            seen[end] = look(end)
    before = -1
    while len(seen) > before:  # A lesser change that is narrowed may bring a change of verdict to light.
        before = len(seen)
        narrow(seen, _verdicts_differ, look, may)
        narrow(seen, _details_differ, look, cheaply)
    looks = tuple(_look(name, known.get(place), place in read, failed.get(place), left_out) for place, name in enumerate(names))

    def step(pair: tuple[int, int]) -> Step:
        start, end = pair
        return Step(looks[start], looks[end], compare(case.name, seen[start], seen[end]), looks[start + 1 : end])

    found, details = steps(seen, _verdicts_differ), steps(seen, _details_differ)
    main, lesser = (found, [pair for pair in details if pair not in found]) if found else (details, [])
    environment = next((environment for environment, _ in known.values()), None)
    return Bisection(
        case=case.name,
        machine=environment.machine if environment else "",
        engine=environment.engine if environment else "",
        by="verdict" if found else "details",
        looks=looks,
        steps=tuple(map(step, main)),
        lesser=tuple(map(step, lesser)),
    )


def stored_results(case: Case, names: Iterable[str], store: Store, machine: str | None, catalogue: Catalogue) -> dict[str, Result]:
    """The results that need no run, by name: of this version of the case, with its sizes, and with enough sound attempts."""
    if machine is None or machine not in store.machines():
        return {}
    there, found = store.releases(machine), {}
    for name in names:
        full = stored_releases.stored(name, there)
        sweep = store.read(machine, full) if full else None
        record = sweep.cases.get(case.name) if sweep else None
        if sweep is None or record is None or record.version != case.version or len(_sound(record)) < NEEDED:
            continue
        plan = make_plan(catalogue, [case], engine=sweep.environment.engine, attempts=NEEDED)
        if dict(record.options) == dict(plan.cases[0].options):
            found[name] = (sweep.environment, record)
    return found


def _look(name: str, result: Result | None, read: bool, failed: str | None, left_out: Collection[str]) -> Look:
    if result is not None:
        environment, record = result
        told = _told(record) is not None
        return Look(environment.release, record, "store" if read else "run", "" if told else summarise(record).rates, untold=not told)
    if failed is not None:
        return Look(name, why=failed, untold=True)
    return Look(name, why="left out" if name in left_out else "not looked at")


def _sound(record: CaseRecord) -> list[Attempt]:
    return [attempt for attempt in record.attempts if attempt.outcome.kind != "broken"]


def _told(record: CaseRecord) -> CaseRecord | None:
    """The record where enough attempts agree on a verdict about the release."""
    return record if summarise(record).verdict not in UNSETTLED and len(_sound(record)) >= NEEDED else None


def _verdicts_differ(one: CaseRecord, two: CaseRecord) -> bool:
    return summarise(one).verdict != summarise(two).verdict


def _details_differ(one: CaseRecord, two: CaseRecord) -> bool:
    """True for every change that a check would call news: of the verdict, and of errors, values, warnings."""
    return compare(one.case, one, two).change in NEWS
