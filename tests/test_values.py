"""Values: equality and what a person reads."""

from __future__ import annotations

import json
import math

import pytest

from replaydrift.values import encode_float, equal, show

NAN, INF = encode_float(math.nan), encode_float(math.inf)


@pytest.mark.parametrize(
    ("left", "right", "tolerance", "same"),
    [
        (1, 1, 0, True),
        (1, 1.0, 0, True),
        (1, 2, 0, False),
        (True, 1, 0, False),
        (True, True, 0, True),
        (NAN, NAN, 0, True),
        (NAN, 1.0, 0, False),
        (INF, INF, 0, True),
        (INF, encode_float(-math.inf), 0, False),
        (1.0, 1.0005, 1e-3, True),
        (1000.0, 1000.5, 1e-3, True),
        (1.0, 1.1, 1e-3, False),
        (2**53, 2**53 + 1, 0, False),
        ([1, [2, NAN]], [1, [2, NAN]], 0, True),
        ([1, 2], [1], 0, False),
        ({"a": 1}, {"a": 1}, 0, True),
        ({"a": 1}, {"b": 1}, 0, False),
        ("x", "x", 0, True),
        (None, None, 0, True),
        (None, 0, 0, False),
        ([], {}, 0, False),
    ],
)
def test_equal(left: object, right: object, tolerance: float, same: bool) -> None:
    """Equal means exact, NaN equal to NaN, unless a tolerance is declared; and it is symmetric."""
    assert equal(left, right, tolerance) is same
    assert equal(right, left, tolerance) is same


def test_not_a_number_survives_strict_json() -> None:
    """NaN and both infinities go through strict JSON and come back equal."""
    for number in (math.nan, math.inf, -math.inf):
        value = encode_float(number)
        assert equal(json.loads(json.dumps(value, allow_nan=False)), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.1 + 0.2, "0.3"),
        (NAN, "nan"),
        ([6.0, 6.0], "[6, 6]"),
        ({"complex": [1.0, -2.0]}, "1-2j"),
        (list(range(100)), "[0, … 100 values]"),
        ("x" * 50, "x" * 39 + "…"),
    ],
)
def test_show(value: object, text: str) -> None:
    """A person reads short numbers, and how many there are where they are many."""
    assert show(value) == text
