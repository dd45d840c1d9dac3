"""What a step costs at lengths that nobody measured."""

from __future__ import annotations

import math

import pytest

from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError


def test_between_and_beyond_the_points() -> None:
    """Straight lines join the points, in whatever order they come, and go on beyond the last two."""
    step = StepCost(((30, 50.0), (10, 10.0), (20, 20.0)))
    assert [step.at(length) for length in (0, 10, 15, 20, 25, 30, 40)] == [0, 10, 15, 20, 35, 50, 80]


def test_nothing_costs_less_than_nothing() -> None:
    """A falling line ends at zero."""
    assert StepCost(((1, 2.0), (2, 1.0))).at(9) == 0


def test_one_point() -> None:
    """A single measurement holds for every length."""
    assert StepCost(((64, 7.5),)).at(1) == StepCost(((64, 7.5),)).at(900) == 7.5


def test_two_numbers() -> None:
    """A fixed part and a part for each element."""
    assert StepCost.linear(3, 0.5).at(10) == 8
    assert StepCost.elements().at(12) == 12


@pytest.mark.parametrize(
    ("points", "match"),
    [((), "without a point"), (((1, -1.0),), "at least 0"), (((1, math.nan),), "finite"), (((1, 1.0), (1, 2.0)), "two costs at one length")],
)
def test_what_is_no_curve(points: tuple[tuple[int, float], ...], match: str) -> None:
    """A curve that cannot be one is refused."""
    with pytest.raises(TraceError, match=match):
        StepCost(points)
