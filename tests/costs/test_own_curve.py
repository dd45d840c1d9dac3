"""Prices that a person measured of a model of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydrift.costs.own_curve import read_prices
from replaydrift.errors import TraceError


def write(folder: Path, text: str) -> Path:
    """A file with this text."""
    path = folder / "curve.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_column(tmp_path: Path) -> None:
    """Steps and captures come out in microseconds, lines in any order, empty cells left out."""
    prices = read_prices(write(tmp_path, "length, step_us,capture_ms,eager_us,pool_bytes\n512,40,3.5,,100\n64,10,,,50\n128,20,3,90,\n"))
    assert prices.step.points == ((64, 10), (128, 20), (512, 40))
    assert prices.capture is not None
    assert prices.capture.points == ((128, 3000), (512, 3500))
    assert prices.eager is not None
    assert prices.eager.at(7) == 90
    assert prices.pool_bytes is not None
    assert prices.pool_bytes.at(64) == 50
    assert prices.source.endswith("says of lengths 64, 128, 512.")
    assert prices.timed


def test_steps_alone(tmp_path: Path) -> None:
    """What is not in the file is not known."""
    prices = read_prices(write(tmp_path, "length,step_us\n64,10\n"))
    assert (prices.capture, prices.eager, prices.pool_bytes) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", r"has the columns \[\]: expected length, step_us"),
        ("length,step_ms\n1,2\n", "expected length, step_us and any of"),
        ("length,step_us\n", "holds no cost"),
        ("length,step_us\n1,\n", "holds no cost"),
        ("length,step_us\n1,2\nx,3\n", "line 3: found 'x' in column 'length'"),
        ("length,step_us\n1.5,3\n", "line 2: found '1.5' in column 'length', expected a whole number"),
        ("length,step_us\n1,-3\n", "line 2: found '-3' in column 'step_us', expected a number of at least 0"),
        ("length,step_us\n1,inf\n", "found 'inf'"),
        ("length,step_us\n1,3\n1,4\n", "two costs at one length"),
    ],
)
def test_what_is_no_curve(tmp_path: Path, text: str, match: str) -> None:
    """The message says which line, what was found and what was expected."""
    with pytest.raises(TraceError, match=match):
        read_prices(write(tmp_path, text))
