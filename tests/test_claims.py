"""Claims: where a record contradicts a source, and where it does not speak to it."""

from __future__ import annotations

import pytest
from making import attempt, record

from replaydrift.catalogue import CaseNotes, Claim
from replaydrift.claims import contradicted, speaks_of
from replaydrift.records import CaseRecord

TABLE = [
    (Claim("page", "wrong"), record("wrong"), False),
    (Claim("page", "wrong"), record("raised:E: text"), True),
    (Claim("page", "correct"), record("raised:E: text"), True),
    (Claim("page", "raised"), record("raised:E: text"), False),
    (Claim("page", "raised: tex"), record("raised:E: text"), False),
    (Claim("page", "raised: cause"), record(attempt("raised:E: text", cause="C: the cause")), False),
    (Claim("page", "raised: other"), record("raised:E: text"), True),
    (Claim("page", "wrong", observed=(6, 3)), record(attempt("wrong", 6, 3, 8)), False),
    (Claim("page", "wrong", observed=(6, 4)), record(attempt("wrong", 6, 3, 8)), True),
    (Claim("page", "wrong", observed=(6, 3, 8, 1)), record(attempt("wrong", 6, 3, 8)), True),
    # Values that differ from attempt to attempt are luck: only the outcome is held against the claim.
    (Claim("page", "wrong", observed=(9,)), record(attempt("wrong", 6), attempt("wrong", 7), attempt("wrong", 6)), False),
    (Claim("page", "wrong"), record("wrong", "correct", "wrong"), True),
    # Nothing was seen, so nothing contradicts.
    (Claim("page", "wrong"), record("skipped:no compiler"), False),
    (Claim("page", "wrong"), record("broken:died"), False),
    (Claim("page", "wrong"), None, False),
    # A claim about another release says nothing about this one.
    (Claim("seed", "wrong", release="2.12"), record("correct"), False),
    (Claim("seed", "wrong", release="2.13"), record("correct"), True),
]


@pytest.mark.parametrize(("claim", "seen", "contradicts"), TABLE)
def test_contradicted(claim: Claim, seen: CaseRecord | None, contradicts: bool) -> None:
    """A claim is contradicted by another outcome or other values in all attempts, and by nothing less."""
    found = contradicted("g/bug", CaseNotes("frozen choice", claims=(claim,)), seen, "2.13.0+cu130")
    assert bool(found) is contradicts


@pytest.mark.parametrize(
    ("named", "release", "speaks"), [("2.1", "2.14.1+cu130", False), ("2.14", "2.14.1+cu130", True), ("2.14.1", "2.14.1", True)]
)
def test_release_prefix(named: str, release: str, speaks: bool) -> None:
    """A claim about 2.1 is none about 2.14."""
    assert speaks_of(Claim("seed", "wrong", release=named), release) is speaks


def test_a_difference_says_both_sides() -> None:
    """What the source prints and what was seen stand side by side."""
    claim = Claim("page", "wrong", observed=(6, 3))
    (found,) = contradicted("g/bug", CaseNotes("", claims=(claim,)), record(attempt("wrong", 8, 1)), "2.13.0")
    assert (found.claimed, found.seen) == ("wrong (6, 3)", "wrong (8, 1)")
