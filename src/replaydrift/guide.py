"""An upgrade guide's facts: what a person has to know between two releases, each with the release that brought it.

A check compares both ends. The releases between them that the store has too say at which step a case changed, and the entries of
explanations.toml give the cause and what to do about it. Everything is a function of those; `report.guide_text` only prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from replaydrift import stored_releases
from replaydrift.changes import CHANGES, NEWS
from replaydrift.check import Check, Finding, check, is_new
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.explained import CHANGE as COST_CHANGED
from replaydrift.costs.findings import CostFinding
from replaydrift.explanations import FILE, Explanation, ExplanationError, read_tree
from replaydrift.records import CaseRecord
from replaydrift.store import Store
from replaydrift.verdicts import settled

# What a guide does with a change: something to do first, code that was wrong already, warns otherwise,
# is right now, can be used now, costs less.
DO: Final = "do"
STILL: Final = "still"
WARNS: Final = "warns"
FIXED: Final = "fixed"
NEW: Final = "new"
CHEAPER: Final = "cheaper"
_SECTION_OF: Final = {"values-changed": STILL, "warnings-changed": WARNS, "fixed": FIXED}
# Memory that is missing stops a service; another text of an error seldom does.
_COSTS_AFTER: Final = CHANGES.index("now-raises")
_KEYS: Final = ("file", "machine", "from", "to")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A guide that explanations.toml asks `publish` for: the name of its file, the machine, and both releases as a person writes them."""

    file: str
    machine: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Item:
    """What one cause did on the step to one release: to cases, or (`costs`) to what is measured.

    `step` is None where the releases between cannot tell at which of them it happened. `shown` are the two releases whose sides the
    findings hold: both ends, or those of the step where a case changed at several.
    """

    section: str
    change: str
    step: tuple[str, str] | None
    shown: tuple[str, str]
    explained_by: tuple[Explanation, ...]
    cases: tuple[Finding, ...] = ()
    costs: tuple[CostFinding, ...] = ()

    @property
    def title(self) -> str:
        """What changed, in a few words of a person; empty where nobody gave them."""
        return "; ".join(dict.fromkeys(entry.title for entry in self.explained_by if entry.title))

    @property
    def advice(self) -> str:
        """Whom it concerns and what to do; empty where nobody said."""
        return " ".join(dict.fromkeys(entry.advice for entry in self.explained_by if entry.advice))

    @property
    def open(self) -> bool:
        """True for news that nobody has explained."""
        return not self.explained_by and self.change in NEWS


@dataclass(frozen=True)
class Guide:
    """Both ends compared, the steps between them oldest first, and what a person wrote about where each release ran."""

    check: Check
    steps: tuple[Check, ...]
    items: tuple[Item, ...]
    priced: tuple[Check, ...]  # whose costs the guide tells of: the steps, or both ends where only those were measured together
    notes: Mapping[str, str]
    driver: str = ""

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that were looked at, oldest first."""
        return (self.check.old, *(step.new for step in self.steps))

    def of(self, section: str) -> tuple[Item, ...]:
        """The items of a section, the most dangerous first."""
        return tuple(item for item in self.items if item.section == section)


def read_wanted(path: Path = FILE) -> tuple[Wanted, ...]:
    """The `[[guide]]` entries in file order; none without the file. ExplanationError lists every broken rule."""
    problems: list[str] = []
    wanted: list[Wanted] = []
    for number, entry in enumerate(read_tree(path).get("guide", []), 1):
        at = f"{path}: guide {number}"
        if set(entry) != {*_KEYS} or not all(isinstance(value, str) and value for value in entry.values()):
            problems.append(f"{at}: has the keys {', '.join(sorted(entry))}: expected text for {', '.join(_KEYS)}")
            continue
        made = Wanted(*(entry[key] for key in _KEYS))
        if Path(made.file).name != made.file or not made.file.endswith(".md") or made.file == "index.md":
            problems.append(f"{at}: 'file' is {made.file!r}: expected the name of a Markdown page of its own, such as 'upgrade-2.13-to-2.15.md'")
        if made.file in {other.file for other in wanted}:
            problems.append(f"{at}: 'file' is {made.file!r}, which another guide has: give each a name of its own")
        wanted.append(made)
    if problems:
        raise ExplanationError("\n".join(problems))
    return tuple(wanted)


def guide(
    store: Store, machine: str, old: str, new: str, cases: Iterable[str] = (), entries: Sequence[Explanation] = (), *,
    only: bool = False, costs: CostStore | None = None,
) -> Guide:  # fmt: skip
    """The guide between two stored releases (full names) of a machine; the arguments are those of `check`."""
    wanted = frozenset(cases)
    read = cache(lambda release: store.read(machine, release))

    def checked(start: str, end: str) -> Check:
        return check(store, machine, start, end, wanted, entries, only=only, read=read, costs=costs)

    whole = checked(old, new)
    pairs = _between(store.releases(machine), old, new)
    steps = tuple(checked(*pair) for pair in pairs) if len(pairs) > 1 else (whole,)
    priced = steps if any(step.costs and not step.costs.problem for step in steps) else (whole,)
    environments = [read(name).environment for name in (old, *(end for _, end in pairs))]
    drivers = dict.fromkeys(str(environment.facts.get("gpu", {}).get("driver", "")) for environment in environments)
    return Guide(
        whole,
        steps,
        tuple(sorted([*_of_cases(whole, steps), *_of_costs(priced)], key=_rank)),
        priced,
        {environment.release: environment.note for environment in environments if environment.note},
        ", ".join(driver for driver in drivers if driver and driver != "None"),
    )


def _between(names: Iterable[str], old: str, new: str) -> list[tuple[str, str]]:
    """The neighbouring pairs of stored releases from old to new, where both are of one line; else both ends alone."""
    for line in stored_releases.lines(names):
        if old in line and new in line and line.index(old) < line.index(new):
            return list(pairwise(line[line.index(old) : line.index(new) + 1]))
    return [(old, new)]


def _rank(item: Item) -> tuple[int, str, str]:
    """Sort key: the most dangerous first, what needs more memory before what merely reads otherwise; then the older release."""
    danger = _COSTS_AFTER if item.costs else CHANGES.index(item.change)
    first = item.cases[0].change.case if item.cases else ""
    return danger, item.step[1] if item.step else "", first


def _of_cases(whole: Check, steps: Sequence[Check]) -> list[Item]:
    """One item for the cases that one cause changed at one step in the same way."""
    groups: dict[tuple[str, ...], tuple[str, str, _Turn, list[Finding]]] = {}
    for finding in whole.findings:
        if _section(finding) is None:
            continue
        for turn in _turns(finding, whole, steps):
            told = turn.finding if turn.shown == turn.step else finding  # A step that shows its own sides is called what it is.
            section = _section(told)
            if section is None:
                continue
            cause = " ".join(entry.why for entry in turn.explained_by) or turn.finding.change.why
            key = (section, told.change.change, *(turn.step or ("", "")), *turn.shown, cause)
            groups.setdefault(key, (section, told.change.change, turn, []))[3].append(turn.finding)
    return [
        Item(section, change, turn.step, turn.shown, turn.explained_by, tuple(findings)) for section, change, turn, findings in groups.values()
    ]


def _section(finding: Finding) -> str | None:
    """Where a guide tells of a change; None for what nothing can be said about, which is listed as open."""
    change = finding.change
    if change.change not in NEWS:
        return NEW if is_new(change) and change.new is not None and _is_right(change.new) else None
    if change.change == "fixed" and change.new is not None and change.new.kind != "bug" and not _was_wrong(finding):
        return NEW  # What raised and was no bug asked for something that the old release did not have.
    return _SECTION_OF.get(change.change, DO)


def _is_right(record: CaseRecord) -> bool:
    """True for a case that does what it is there to show is possible: what is new is of use then."""
    return record.kind != "bug" and all(attempt.outcome.kind == "correct" for attempt in settled(record.attempts))


def _was_wrong(finding: Finding) -> bool:
    old = finding.change.old
    return old is not None and any(attempt.outcome.kind == "wrong" for attempt in old.attempts)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Where a case took its change, what to show of it between which releases, and what explains it."""

    finding: Finding
    step: tuple[str, str] | None
    shown: tuple[str, str]
    explained_by: tuple[Explanation, ...]


def _turns(finding: Finding, whole: Check, steps: Sequence[Check]) -> list[_Turn]:
    """The steps at which a case took its change; of a case that changed at several, those that did the same as both ends together.

    Both ends are shown where one step made the change; else, and of warnings always, each step shows its own two sides.
    """
    own = [
        _Turn(found, (step.old, step.new), (step.old, step.new), found.explained_by)
        for step in steps
        for found in step.findings
        if found.change.case == finding.change.case and (found.change.change in NEWS or is_new(found.change))
    ]
    turns = [turn for turn in own if turn.finding.change.change == finding.change.change] or own
    if len(turns) > 1 or (turns and finding.change.change == "warnings-changed"):
        return turns
    step = turns[0].step if turns else None
    explained_by = (turns[0].explained_by if turns else ()) or finding.explained_by
    return [_Turn(finding, step, (whole.old, whole.new), explained_by)]


def _of_costs(steps: Sequence[Check]) -> list[Item]:
    """One item for the costs that one cause moved at one step: more of something is to be done about, less of it is not."""
    groups: dict[tuple[object, ...], tuple[Check, tuple[Explanation, ...], list[CostFinding]]] = {}
    for step in steps:
        for finding in step.costs.news if step.costs else ():
            explained_by = step.costs_explained.get(finding.name, ())
            cause = " ".join(dict.fromkeys(entry.why for entry in explained_by))
            key = (finding.direction, step.new, cause or finding.metric)
            groups.setdefault(key, (step, explained_by, []))[2].append(finding)
    return [
        Item(
            DO if direction == "more" else CHEAPER, COST_CHANGED, (step.old, step.new), (step.old, step.new), explained_by, costs=tuple(findings),
        )
        for (direction, *_), (step, explained_by, findings) in groups.items()
    ]  # fmt: skip
