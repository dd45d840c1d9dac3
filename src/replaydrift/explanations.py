"""explanations.toml: why a change happened, in a person's words. Written by people, drafted by `replaydrift accept`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from replaydrift import releases
from replaydrift.changes import Change
from replaydrift.errors import ReplaydriftError
from replaydrift.verdicts import settled

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE: Final = Path("explanations.toml")
_REASON_KEYS: Final = ("case", "source", "since", "why", "link")
_KEYS: Final = ("case", "machine", "from", "to", "change", "before", "after", "why")
_OPTIONAL: Final = ("link", "title", "advice")
ANY_MACHINE: Final = "*"


class ExplanationError(ReplaydriftError):
    """explanations.toml breaks a rule; every broken rule is listed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One known change of one case: its own step from release to release, what was before and after, why, and a link.

    `title` says in a few words what changed, `advice` whom it concerns and what to do; an upgrade guide prints both.
    """

    case: str
    machine: str
    start: str
    end: str
    change: str
    before: str
    after: str
    why: str
    link: str
    title: str = ""
    advice: str = ""

    def speaks_of(self, machine: str) -> bool:
        """True for its own machine; `*` speaks of every machine."""
        return self.machine in (machine, ANY_MACHINE)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why torch, from the release `since` on, does something else with a case than a source claims."""

    case: str
    source: str
    since: str
    why: str
    link: str

    def speaks_of(self, case: str, source: str, release: str) -> bool:
        """True for its own case and source, from its own release on."""
        version = releases.Release.parse(release).key[:-1]
        return (self.case, self.source) == (case, source) and version >= releases.Release.parse(self.since).key[:-1]


def read_reasons(path: Path = FILE) -> tuple[Reason, ...]:
    """The `[[difference]]` entries in file order; none without the file. ExplanationError lists every broken rule."""
    entries = read_tree(path).get("difference", [])
    problems = [
        f"{path}: difference {number}: has the keys {', '.join(sorted(entry))}: expected text for {', '.join(_REASON_KEYS)} (link may be left out)"
        for number, entry in enumerate(entries, 1)
        if not {*_REASON_KEYS} - {"link"} <= set(entry) <= {*_REASON_KEYS} or not all(isinstance(value, str) and value for value in entry.values())
    ]
    if problems:
        raise ExplanationError("\n".join(problems))
    return tuple(Reason(entry["case"], entry["source"], entry["since"], entry["why"].strip(), entry.get("link", "")) for entry in entries)


def read_explanations(path: Path = FILE) -> tuple[Explanation, ...]:
    """The entries in file order; none without the file. ExplanationError lists every broken rule.

    Entries with the same `why` have one cause: a title or an advice that one of them gives is that of all.
    """
    entries = read_tree(path).get("change", [])
    problems = [problem for number, entry in enumerate(entries, 1) for problem in _problems(entry, f"{path}: entry {number}")]
    if problems:
        raise ExplanationError("\n".join(problems))
    read = [
        Explanation(
            entry["case"], entry["machine"], entry["from"], entry["to"], entry["change"], entry["before"], entry["after"],
            entry["why"].strip(), entry.get("link", ""), entry.get("title", "").strip(), entry.get("advice", "").strip(),
        )
        for entry in entries
    ]  # fmt: skip
    given = {key: _given(read, key, path) for key in ("title", "advice")}
    return tuple(replace(entry, title=given["title"].get(entry.why, ""), advice=given["advice"].get(entry.why, "")) for entry in read)


def _given(entries: Iterable[Explanation], key: str, path: Path) -> dict[str, str]:
    """What people wrote under `key`, by the cause it belongs to; ExplanationError where one cause has two texts."""
    given: dict[str, str] = {}
    problems = []
    for entry in entries:
        text = getattr(entry, key)
        if text and given.setdefault(entry.why, text) != text:
            problems.append(f"{path} ({entry.case}): {key!r} is {text!r}, and {given[entry.why]!r} at another entry with the same 'why': keep one")
    if problems:
        raise ExplanationError("\n".join(problems))
    return given


def read_tree(path: Path) -> dict[str, Any]:
    """The file's content; nothing without the file."""
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExplanationError(f"{path}: cannot be read as TOML: {error}") from error


def _problems(entry: dict[str, Any], at: str) -> list[str]:
    known = _KEYS + _OPTIONAL
    missing = [key for key in _KEYS if key not in entry]
    problems = [f"{at}: no {key!r}: expected {', '.join(_KEYS)}" for key in missing]
    problems += [f"{at}: unknown key {key!r}: expected one of {', '.join(known)}" for key in entry if key not in known]
    strange = [key for key in known if not isinstance(entry.get(key, ""), str)]
    problems += [f"{at}: {key!r} is {type(entry[key]).__name__}: expected text" for key in strange]
    if not missing and not str(entry["why"]).strip():
        problems.append(f"{at} ({entry['case']}): 'why' is empty: say in a sentence what in torch changed, or that the cause is open")
    title = str(entry.get("title", "")).strip()
    if "\n" in title or title.endswith("."):
        problems.append(f"{at}: 'title' is {title!r}: expected a few words on one line, without a full stop; sentences belong in 'advice'")
    return problems


def state(change: Change, side: str) -> str:
    """The outcome of one side of a change as an explanation keeps it; `''` where that side has no record."""
    record = change.old if side == "before" else change.new
    return settled(record.attempts)[0].outcome.signature if record and record.attempts else ""


def explaining(
    change: Change, machine: str, entries: Iterable[Explanation], within: Callable[[str, str], bool],
) -> tuple[Explanation, ...]:  # fmt: skip
    """The entries that, one after another, lead from the change's old side to its new side; none where they do not.

    `within(start, end)` says whether a step lies in the range that is being checked. A range may hold several steps of one
    case (an error reworded in one release, gone in the next): each explains its part.
    """
    own = [entry for entry in entries if entry.case == change.case and entry.speaks_of(machine) and within(entry.start, entry.end)]
    at, goal, path = state(change, "before"), state(change, "after"), []
    for entry in sorted(own, key=lambda entry: releases.order(entry.start)):
        same_outcome = entry.before == entry.after
        if entry.before == at and (not same_outcome or entry.change == change.change):
            path.append(entry)
            at = entry.after
    return tuple(path) if path and at == goal else ()


def still_true(entry: Explanation, change: Change) -> bool:
    """True where the change between the entry's own two releases is still the one it explains."""
    return change.change == entry.change and state(change, "before") == entry.before and state(change, "after") == entry.after
