"""Verdicts: the outcome read by the kind of the case, and what several attempts agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from replaydrift.outcome import Outcome
from replaydrift.records import KINDS, Attempt, CaseRecord

_BUG: Final = {"wrong": "reproduced", "correct": "not reproduced", "raised": "loud"}
_OTHER: Final = {"wrong": "fails", "correct": "holds", "raised": "raises"}
_BOTH: Final = {"crashed": "crashes", "timed-out": "hangs", "skipped": "skipped", "broken": "broken"}

# Every verdict a cell of the matrix may show, the dangerous first; `flaky` and `missing` stand for what attempts do not settle.
VERDICTS: Final = (
    "fails", "crashes", "hangs", "raises", "reproduced", "loud", "not reproduced", "holds", "flaky", "skipped", "broken", "missing",
)  # fmt: skip

# A glyph a verdict, so that a matrix reads without colour.
GLYPHS: Final = {
    "fails": "✗", "crashes": "☠", "hangs": "∞", "raises": "!", "reproduced": "●", "loud": "◆", "not reproduced": "○", "holds": "✓",
    "flaky": "~", "skipped": "–", "broken": "?", "missing": " ",
}  # fmt: skip


def verdict(kind: str, outcome: Outcome) -> str:
    """One of `VERDICTS` for one attempt of a case of this kind; ValueError for a kind that is none."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: expected one of {', '.join(KINDS)}")
    return (_BUG if kind == "bug" else _OTHER).get(outcome.kind) or _BOTH[outcome.kind]


@dataclass(frozen=True, slots=True)
class Summary:
    """What the attempts of one case came to: one verdict, or `flaky` with how often each outcome was seen."""

    verdict: str
    counts: tuple[tuple[str, int], ...]  # outcome text and number of attempts, the most frequent first
    attempts: int

    @property
    def unanimous(self) -> bool:
        """True where all attempts came to the same outcome."""
        return len(self.counts) == 1

    @property
    def rates(self) -> str:
        """For a person: `correct 2 of 3, wrong 1 of 3`."""
        return ", ".join(f"{text} {count} of {self.attempts}" for text, count in self.counts)


def settled(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts that say something about torch: those a machine's fault broke are left out, unless nothing else is left."""
    sound = tuple(attempt for attempt in attempts if attempt.outcome.kind != "broken")
    return sound or tuple(attempts)


def summarise(record: CaseRecord | None) -> Summary:
    """The summary of a record; `missing` for none."""
    if record is None or not record.attempts:
        return Summary("missing", (), 0)
    attempts = settled(record.attempts)
    counts = Counter(attempt.outcome.signature for attempt in attempts)
    words = {verdict(record.kind, attempt.outcome) for attempt in attempts}
    word = words.pop() if len(words) == 1 else "flaky"
    return Summary(word, tuple(counts.most_common()), len(attempts))
