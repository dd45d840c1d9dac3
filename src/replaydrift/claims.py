"""Claims against what was seen: "where torch X differs from the page"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replaydrift.catalogue import CaseNotes, Claim
from replaydrift.outcome import Outcome, same_text
from replaydrift.records import Attempt, CaseRecord
from replaydrift.strip import Missing
from replaydrift.values import equal, show
from replaydrift.verdicts import settled, summarise


@dataclass(frozen=True, slots=True)
class Difference:
    """A claim that a record contradicts: what the source says, and what every attempt (or some) did instead."""

    case: str
    claim: Claim
    claimed: str
    seen: str


def contradicted(case: str, notes: CaseNotes, record: CaseRecord | None, release: str) -> tuple[Difference, ...]:
    """The claims about this case that do not fit what was seen on `release`; none for a case that was skipped or not run.

    A claim that names releases counts for those alone. A claimed outcome must be that of every attempt, claimed values
    must be those of the attempts' strips, unless the attempts differ among themselves: then values are luck, and only the
    outcome is held against the claim.
    """
    if record is None:
        return ()
    attempts = [attempt for attempt in settled(record.attempts) if attempt.outcome.kind not in ("skipped", "broken")]
    if not attempts:
        return ()
    return tuple(
        Difference(case, claim, _claimed(claim), _seen(record))
        for claim in notes.claims
        if speaks_of(claim, release) and not _fits(claim, attempts)
    )


def speaks_of(claim: Claim, release: str) -> bool:
    """True where the claim names no release, or this one: `2.14` names `2.14.1+cu130` but not `2.1.4`."""
    if claim.release is None:
        return True
    public = release.partition("+")[0]
    return public == claim.release or public.startswith(claim.release + ".")


def _fits(claim: Claim, attempts: Iterable[Attempt]) -> bool:
    attempts = tuple(attempts)
    if not all(_outcome_fits(claim.says, attempt.outcome, attempt) for attempt in attempts):
        return False
    if claim.observed is None or len({repr(attempt.strip) for attempt in attempts}) > 1:
        return True
    observed = [cell.observed for cell in attempts[0].strip if not isinstance(cell.observed, Missing)]
    # A source may print fewer values than the case shows, since a case replays longer to be visibly wrong.
    return len(observed) >= len(claim.observed) and all(
        equal(seen, said, 1e-3) for seen, said in zip(observed, claim.observed, strict=False)
    )


def _outcome_fits(says: str, outcome: Outcome, attempt: Attempt) -> bool:
    kind, _, part = says.partition(":")
    if kind != outcome.kind:
        return False
    wanted = same_text(part)
    return not wanted or any(wanted in same_text(f"{link.class_name}: {link.text}") for link in attempt.chain) or wanted in outcome.text


def _claimed(claim: Claim) -> str:
    if claim.observed is None:
        return claim.says
    return f"{claim.says} ({', '.join(show(value) for value in claim.observed)})"


def _seen(record: CaseRecord) -> str:
    summary = summarise(record)
    if not summary.unanimous:
        return summary.rates
    first = settled(record.attempts)[0]
    return f"{first.outcome.text} ({first.observed})" if first.outcome.kind in ("correct", "wrong") else first.outcome.text
