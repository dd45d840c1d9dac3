"""Judging a report beside its reference's: the whole truth table, and addresses as distances."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.judge import HOWS, judge, relative_addresses
from replaydrift.outcome import Outcome
from replaydrift.records import attempt_from_json, attempt_to_json

DETAILS = {"skipped": "no GPU", "crashed": "SIGSEGV", "timed-out": "120 s", "broken": "server died"}


def report(how: str = "finished", *values: object, **more: Any) -> dict[str, Any]:
    """A report that ended like this; `values` are shown at the step `replay`."""
    return {
        "how": how,
        "detail": DETAILS.get(how),
        "values": [["replay", value] for value in values],
        "warnings": [],
        "chain": [{"class": "ValueError", "text": "bad\nmore", "where": "x.py:1"}] if how == "raised" else [],
        "stdout": "",
        "stderr": "",
        "duration_ms": 1.5,
        "capture_ms": None,
        "rules": [],
        **more,
    }


OWN = {
    "raised": "raised:ValueError: bad",
    "skipped": "skipped:no GPU",
    "crashed": "crashed:SIGSEGV",
    "timed-out": "timed-out:120 s",
    "broken": "broken:server died",
}


@pytest.mark.parametrize(("case", "reference"), list(itertools.product(OWN, HOWS)))
def test_a_case_that_did_not_finish(case: str, reference: str) -> None:
    """What a case came to itself is its outcome, whatever its reference did."""
    assert judge(report(case, 1), report(reference, 1)).outcome.text == OWN[case]


@pytest.mark.parametrize(
    ("reference", "outcome"),
    [
        ("raised", "broken:its reference did not finish: raised:ValueError: bad"),
        ("skipped", "skipped:its reference was skipped: no GPU"),
        ("crashed", "broken:its reference did not finish: crashed:SIGSEGV"),
        ("timed-out", "broken:its reference did not finish: timed-out:120 s"),
        ("broken", "broken:its reference did not finish: broken:server died"),
    ],
)
def test_a_reference_that_did_not_finish(reference: str, outcome: str) -> None:
    """Without a whole reference a finished case cannot be judged, even where its values look right."""
    assert judge(report("finished", 1), report(reference, 1)).outcome.text == outcome


@pytest.mark.parametrize(
    ("seen", "right", "tolerance", "outcome"),
    [
        ((1, 2), (1, 2), 0.0, "correct"),
        ((1, 3), (1, 2), 0.0, "wrong"),
        ((1,), (1, 2), 0.0, "wrong"),
        ((1, 2, 3), (1, 2), 0.0, "wrong"),
        (({"float": "nan"},), ({"float": "nan"},), 0.0, "correct"),
        ((1.0001,), (1.0,), 0.001, "correct"),
        ((1.01,), (1.0,), 0.001, "wrong"),
    ],
)
def test_two_that_finished(seen: tuple[object, ...], right: tuple[object, ...], tolerance: float, outcome: str) -> None:
    """Two that finished are compared value by value within the tolerance; one too few or too many is wrong."""
    assert judge(report("finished", *seen), report("finished", *right), tolerance).outcome.text == outcome


def test_nothing_to_compare() -> None:
    """A case that shows evidence alone is broken, not correct."""
    silent = report(values=[["note", 1]])
    assert judge(silent, silent).outcome.kind == "broken"


def test_a_strip_ends_where_its_case_raised() -> None:
    """What a case never came to show is no cell of its strip."""
    strip = judge(report("raised", 1), report("finished", 1, 2, 3)).strip
    assert [(cell.observed, cell.correct) for cell in strip] == [(1, 1)]


def test_an_unknown_ending_is_refused() -> None:
    """A report that ended in no known way is an error of ours, not a verdict."""
    with pytest.raises(ValueError, match="'vanished'"):
        judge(report("vanished"), report("finished", 1))


@pytest.mark.parametrize("text", ["", "\n\n", "word " * 1000, "a: b: c", "line\nother"])
def test_any_text_gives_an_outcome_that_round_trips(text: str) -> None:
    """However odd an exception's text, the attempt survives the way to the store and back."""
    chain = [{"class": "torch.AcceleratorError", "text": text, "where": None}]
    attempt = judge(report("raised", chain=chain), report("finished", 1))
    assert Outcome.parse(attempt.outcome.text) == attempt.outcome
    assert attempt_from_json(attempt_to_json(attempt)) == attempt
    assert len(attempt.outcome.text) < 500


@given(st.lists(st.integers(1, 2**48), min_size=1), st.integers(0, 2**40))
def test_addresses_do_not_depend_on_where_memory_lies(addresses: list[int], offset: int) -> None:
    """The same layout elsewhere in memory gives the same evidence, and the lowest address is +0x0."""
    here = relative_addresses([("address", {"all": list(addresses)}), ("note", 7)])
    there = relative_addresses([("address", {"all": [address + offset for address in addresses]}), ("note", 7)])
    assert here == there
    assert "+0x0" in str(here)
    assert here[1] == ("note", 7)
