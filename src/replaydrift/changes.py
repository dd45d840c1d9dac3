"""Changes: a pure function of two records of one case on one machine. The truth table in its test is the specification."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass
from typing import Final

from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, CaseRecord
from replaydrift.verdicts import settled, summarise

# Most dangerous first: this is the order of every list of changes. What nobody can see by looking comes before what is loud.
CHANGES: Final = (
    "now-wrong", "now-crashes", "now-raises", "values-changed", "now-loud", "error-changed", "warnings-changed", "cost-changed",
    "fixed", "flaky", "missing", "cannot-tell", "not-comparable", "skipped", "same",
)  # fmt: skip

# These are news that a person must explain; the rest of the list is either no change or no statement.
NEWS: Final = frozenset(CHANGES[: CHANGES.index("flaky")])
UNDECIDED: Final = frozenset({"missing", "cannot-tell", "not-comparable"})
# What is no finding: skipped by both releases alike, or the same.
QUIET: Final = frozenset({"skipped", "same"})

# So many attempts a side must agree among themselves: a case that merely flickers passes as changed in at most 2 * 4**-3 of comparisons.
NEEDED: Final = 3

_GOOD, _SILENT, _LOUD, _DEAD = "correct", "wrong", "raised", ("crashed", "timed-out")


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one case between two records: one of `CHANGES`, and a sentence with what was seen on each side."""

    case: str
    change: str
    why: str
    old: CaseRecord | None = None
    new: CaseRecord | None = None

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key: the most dangerous first, then by name."""
        return CHANGES.index(self.change), self.case


def compare(case: str, old: CaseRecord | None, new: CaseRecord | None, needed: int = NEEDED) -> Change:
    """The change from `old` to `new`; `needed` is how many attempts a side must agree before a difference counts."""
    old, new = (record if record and record.attempts else None for record in (old, new))  # A record of no attempt is none.

    def made(change: str, why: str) -> Change:
        return Change(case, change, why, old, new)

    # Nothing to hold side by side.
    if old is None and new is None:
        return made("missing", "neither release has a record of this case")
    if old is None or new is None:
        return made("missing", f"the {'old' if old is None else 'new'} release has no record of this case")
    if old.version != new.version:
        return made("not-comparable", f"the case's own code differs: version {old.version} against {new.version}")
    if dict(old.options) != dict(new.options):
        return made("not-comparable", f"run with other sizes: {dict(old.options)} against {dict(new.options)}")

    before, after = settled(old.attempts), settled(new.attempts)
    for side, attempts in (("old", before), ("new", after)):
        faults = [attempt.outcome.text for attempt in attempts if attempt.outcome.kind == "broken"]
        if faults:
            return made("cannot-tell", f"the {side} release has no sound attempt: {faults[0]}")

    # Attempts that disagree among themselves say how often, and nothing about the release.
    old_summary, new_summary = summarise(old), summarise(new)
    if not (old_summary.unanimous and new_summary.unanimous):
        return made("flaky", f"{old_summary.rates} → {new_summary.rates}")

    was, now = before[0].outcome, after[0].outcome
    if "skipped" in (was.kind, now.kind):
        if was.kind == now.kind:
            return made("skipped", f"on both: {now.detail}" if was.detail == now.detail else f"{was.detail} → {now.detail}")
        return made("cannot-tell", f"{_said(before[0])} → {_said(after[0])}")

    change = _of_outcomes(was, now) if was.kind != now.kind or was.kind in _DEAD else _of_details(before, after)
    if change == "same":
        return made("same", _said(after[0]))
    if min(len(before), len(after)) < needed:
        fewest = min(len(before), len(after))
        return made(
            "cannot-tell",
            f"{change} on {fewest} attempt(s) a side, but {needed} must agree: {_said(before[0])} → {_said(after[0])}",
        )
    if change == "warnings-changed":
        return made(change, _warnings(before[0], after[0]))
    if change == "error-changed":
        return made(change, f"{_chain(before[0])} → {_chain(after[0])}")
    return made(change, f"{_said(before[0])} → {_said(after[0])}")


def _of_outcomes(was: Outcome, now: Outcome) -> str:
    """The change between two outcomes of different kinds, or two ways to die."""
    if now.kind in _DEAD:
        return "same" if was.signature == now.signature else "now-crashes"
    if now.kind == _SILENT:
        return "now-wrong"
    if now.kind == _GOOD:
        return "fixed"
    return "now-loud" if was.kind == _SILENT else "now-raises"


def _of_details(before: tuple[Attempt, ...], after: tuple[Attempt, ...]) -> str:
    """The change between two sides of the same kind: errors, then values, then warnings. Only what a side agrees on counts."""
    if before[0].outcome.kind == _LOUD:
        if before[0].outcome.signature != after[0].outcome.signature:
            return "error-changed"
        if _changed({attempt.errors for attempt in before}, {attempt.errors for attempt in after}):
            return "error-changed"
    if before[0].outcome.kind == _SILENT and _changed({_values(a) for a in before}, {_values(a) for a in after}):
        return "values-changed"
    if _changed({attempt.warned for attempt in before}, {attempt.warned for attempt in after}):
        return "warnings-changed"
    return "same"


def _changed(before: Set[Hashable], after: Set[Hashable]) -> bool:
    """True where each side agrees with itself and the two sides do not agree with each other."""
    return len(before) == len(after) == 1 and before != after


def _values(attempt: Attempt) -> str:
    return repr(attempt.strip)


def _said(attempt: Attempt) -> str:
    """What one side did, for a person: the outcome, and the values where they were wrong."""
    return f"wrong ({attempt.observed})" if attempt.outcome.kind == _SILENT else attempt.outcome.text


def _chain(attempt: Attempt) -> str:
    """What a user sees first, then what caused it."""
    return " ← ".join(f"{name}: {text}" for name, text in attempt.errors) or attempt.outcome.text


def _warnings(before: Attempt, after: Attempt) -> str:
    gone, come = before.warned - after.warned, after.warned - before.warned
    parts = [f"no longer warns {category}: {text}" for category, text in sorted(gone)]
    parts += [f"now warns {category}: {text}" for category, text in sorted(come)]
    return "; ".join(parts)
