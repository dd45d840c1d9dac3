"""The beat of the host's pace."""

from __future__ import annotations

from itertools import count

from replaydrift.measuring.pace import beat, beat_us


def test_a_beat_is_the_time_of_a_fixed_piece_of_work() -> None:
    """In microseconds, by the clock that it is given."""
    ticks = count(1_000_000, 250_000)
    assert beat_us(lambda: next(ticks)) == 250.0
    assert beat_us() > 0


def test_the_work_is_always_the_same() -> None:
    """It holds the same number of objects whenever it is done, and leaves none of them."""
    assert {beat() for _ in range(3)} == {256}
