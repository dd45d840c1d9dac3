"""Strips: pairing a case's values with its reference's."""

from __future__ import annotations

from replaydrift.strip import MISSING, Cell, is_correct, pair


def test_values_are_paired_in_order_and_evidence_left_out() -> None:
    """The n-th value of the case stands beside the n-th of its reference, whatever evidence lies between."""
    strip = pair([("warmup", 1), ("address", {"a": 0}), ("replay", 3)], [("replay", 1), ("replay", 2)])
    assert strip == (Cell("warmup", 1, 1), Cell("replay", 3, 2))
    assert [cell.differs() for cell in strip] == [False, True]


def test_a_value_too_few_is_wrong() -> None:
    """Eight outputs wanted, four there: the four that are missing differ."""
    strip = pair([("replay", 10)], [("replay", 10), ("replay", 10)])
    assert strip[1] == Cell("replay", MISSING, 10)
    assert not is_correct(strip)


def test_a_value_too_many_is_wrong() -> None:
    """A value that the reference never had differs too."""
    assert not is_correct(pair([("replay", 1), ("replay", 1)], [("replay", 1)]))


def test_a_case_that_stopped_early_shows_what_it_had() -> None:
    """What a case that raised never came to show is not a wrong value."""
    assert pair([("warmup", 1)], [("warmup", 1), ("replay", 2)], whole=False) == (Cell("warmup", 1, 1),)


def test_tolerance_is_the_callers() -> None:
    """A cell differs exactly, or beyond the tolerance that its case declares."""
    cell = Cell("replay", 1.0005, 1.0)
    assert cell.differs()
    assert not cell.differs(1e-3)
