"""Changes: the truth table is the specification."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from making import attempt, record

from replaydrift.changes import CHANGES, NEWS, compare
from replaydrift.records import CaseRecord

CORRECT, WRONG, RAISED, CRASHED, HUNG = "correct", "wrong", "raised:E: text", "crashed:SIGSEGV", "timed-out:60 s"
SKIPPED, BROKEN = "skipped:no compiler", "broken:server died"

# Rows: the old outcome; columns: the new one.
COLUMNS = (CORRECT, WRONG, RAISED, CRASHED, HUNG, SKIPPED, BROKEN)
ROWS = {
    CORRECT: ("same", "now-wrong", "now-raises", "now-crashes", "now-crashes", "cannot-tell", "cannot-tell"),
    WRONG: ("fixed", "same", "now-loud", "now-crashes", "now-crashes", "cannot-tell", "cannot-tell"),
    RAISED: ("fixed", "now-wrong", "same", "now-crashes", "now-crashes", "cannot-tell", "cannot-tell"),
    CRASHED: ("fixed", "now-wrong", "now-raises", "same", "now-crashes", "cannot-tell", "cannot-tell"),
    HUNG: ("fixed", "now-wrong", "now-raises", "now-crashes", "same", "cannot-tell", "cannot-tell"),
    SKIPPED: ("cannot-tell", "cannot-tell", "cannot-tell", "cannot-tell", "cannot-tell", "skipped", "cannot-tell"),
    BROKEN: ("cannot-tell",) * 7,
}
TABLE = {old: dict(zip(COLUMNS, row, strict=True)) for old, row in ROWS.items()}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(TABLE, TABLE)))
@pytest.mark.parametrize("kind", ["bug", "fix", "behaviour"])
def test_table(old: str, new: str, kind: str) -> None:
    """Each pair of outcomes is one change, whatever the kind of the case."""
    assert compare("g/c", record(old, kind=kind), record(new, kind=kind)).change == TABLE[old][new]


DETAILS = [
    ("error-changed", record(attempt("raised:E: text")), record(attempt("raised:F: text"))),
    ("error-changed", record(attempt("raised:E: text")), record(attempt("raised:E: other words"))),
    ("error-changed", record(attempt("raised:E: text", cause="A: a")), record(attempt("raised:E: text", cause="B: b"))),
    ("same", record(attempt("raised:E: at 0x7f0011223344")), record(attempt("raised:E: at 0x7f0055667788"))),
    ("values-changed", record(attempt("wrong", 3)), record(attempt("wrong", 4))),
    ("same", record(attempt("wrong", 3)), record(attempt("wrong", 3))),
    ("same", record(attempt("wrong", 3), attempt("wrong", 4), attempt("wrong", 3)), record(attempt("wrong", 5))),
    ("warnings-changed", record(attempt("correct")), record(attempt("correct", warns=("deprecated",)))),
    ("warnings-changed", record(attempt("wrong", warns=("old",))), record(attempt("wrong", warns=("new",)))),
    ("values-changed", record(attempt("wrong", 3, warns=("old",))), record(attempt("wrong", 4, warns=("new",)))),
    (
        "same",
        record(attempt("correct"), attempt("correct", warns=("once",)), attempt("correct")),
        record(attempt("correct")),
    ),
    ("now-crashes", record("crashed:SIGSEGV"), record("crashed:SIGABRT")),
    ("flaky", record("wrong", "correct", "wrong"), record("wrong")),
    ("flaky", record("wrong"), record("wrong", "raised:E: text", "wrong")),
    ("missing", None, record("wrong")),
    ("missing", record("wrong"), None),
    ("missing", None, None),
    ("missing", replace(record("wrong"), attempts=()), record("wrong")),
    ("not-comparable", record("wrong", version="v1"), record("correct", version="v2")),
    ("not-comparable", record("wrong", options={"elements": 8}), record("wrong", options={"elements": 16})),
    ("skipped", record("skipped:no compiler"), record("skipped:no device")),
    # One side broke once; the sound attempts decide, if there are enough of them.
    ("same", record("wrong", "broken:died", "wrong", "wrong"), record("wrong")),
    ("cannot-tell", record("wrong", "broken:died", "wrong"), record("correct")),
    ("cannot-tell", record("wrong", "wrong"), record("correct")),
    ("same", record("wrong", "wrong"), record("wrong")),
]


@pytest.mark.parametrize(("change", "old", "new"), DETAILS)
def test_details(change: str, old: CaseRecord | None, new: CaseRecord | None) -> None:
    """Errors, values, warnings, and all that keeps two records from being compared."""
    assert compare("g/c", old, new).change == change


def test_every_change_is_in_a_table() -> None:
    """Nothing that `compare` can say is left without an example; costs have a test of their own."""
    shown = {change for row in TABLE.values() for change in row.values()} | {change for change, _, _ in DETAILS}
    assert shown == set(CHANGES) - {"cost-changed"}


def test_silent_wrongness_ranks_first() -> None:
    """What turns silently wrong is read before everything else; machine faults and gaps are no news."""
    assert CHANGES[0] == "now-wrong"
    assert not NEWS & {"same", "flaky", "missing", "cannot-tell", "not-comparable"}


def test_why_says_both_sides() -> None:
    """A finding can be read alone: both sides with values or words."""
    why = compare("g/c", record(attempt("wrong", 3, 1)), record(attempt("raised:E: text", cause="C: cause"))).why
    assert why == "wrong (3, 1) → raised:E: text"
    why = compare("g/c", record(attempt("raised:E: text", cause="C: a")), record(attempt("raised:E: text", cause="C: b"))).why
    assert why == "E: text ← C: a → E: text ← C: b"
