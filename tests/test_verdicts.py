"""Verdicts: the whole table of kinds and outcomes."""

from __future__ import annotations

import pytest
from making import attempt, record

from replaydrift.outcome import DETAILS, Outcome
from replaydrift.records import KINDS
from replaydrift.verdicts import GLYPHS, VERDICTS, summarise, verdict

TABLE = {
    "correct": ("not reproduced", "holds"),
    "wrong": ("reproduced", "fails"),
    "raised:E: text": ("loud", "raises"),
    "crashed:SIGSEGV": ("crashes", "crashes"),
    "timed-out:60 s": ("hangs", "hangs"),
    "skipped:no compiler": ("skipped", "skipped"),
    "broken:server died": ("broken", "broken"),
}


@pytest.mark.parametrize("text", TABLE)
def test_verdict_of_every_outcome(text: str) -> None:
    """A bug is judged one way, a fix and a behaviour the other."""
    outcome = Outcome.parse(text)
    assert (verdict("bug", outcome), verdict("fix", outcome), verdict("behaviour", outcome)) == (
        TABLE[text][0],
        TABLE[text][1],
        TABLE[text][1],
    )


def test_table_is_whole() -> None:
    """Each kind of outcome stands in the table, and each verdict has a glyph of its own."""
    assert {Outcome.parse(text).kind for text in TABLE} == set(DETAILS)
    assert {word for pair in TABLE.values() for word in pair} | {"flaky", "missing"} == set(VERDICTS) == set(GLYPHS)
    assert len(set(GLYPHS.values())) == len(GLYPHS)


def test_unknown_kind() -> None:
    """A kind that is none is refused with those there are."""
    with pytest.raises(ValueError, match="expected one of " + ", ".join(KINDS)):
        verdict("hope", Outcome("correct"))


def test_summary_of_disagreeing_attempts() -> None:
    """Attempts that disagree are flaky, with how often each outcome was seen."""
    summary = summarise(record("wrong", "correct", "wrong"))
    assert (summary.verdict, summary.rates) == ("flaky", "wrong 2 of 3, correct 1 of 3")


def test_machine_faults_do_not_count() -> None:
    """An attempt that the machine broke says nothing about torch while a sound one is there."""
    assert summarise(record("wrong", "broken:died", "wrong")).verdict == "reproduced"
    assert summarise(record("broken:died")).verdict == "broken"
    assert summarise(None).verdict == "missing"


def test_other_error_texts_are_one_verdict() -> None:
    """Errors that differ in words from attempt to attempt are loud all the same, but not unanimous."""
    summary = summarise(record(attempt("raised:E: a"), attempt("raised:E: b"), attempt("raised:E: a")))
    assert summary.verdict == "loud"
    assert not summary.unanimous
