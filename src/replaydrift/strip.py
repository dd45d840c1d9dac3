"""The strip: the values a case showed, step by step, beside those of its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Final

from replaydrift.values import Value, equal

# Steps whose values are paired with the reference's. Everything else that is yielded is evidence.
STEPS: Final = ("warmup", "capture", "replay")


class Missing(Enum):
    """Stands where one side has no value: the case showed fewer values than its reference, or more."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Cell:
    """One step: what was seen and what is right; `MISSING` where a side has nothing."""

    step: str
    observed: Value | Missing
    correct: Value | Missing

    def differs(self, tolerance: float = 0.0) -> bool:
        """True where what was seen is not what is right."""
        if isinstance(self.observed, Missing) or isinstance(self.correct, Missing):
            return True
        return not equal(self.observed, self.correct, tolerance)


Strip = tuple[Cell, ...]
Yielded = tuple[str, Value]


def pair(seen: Sequence[Yielded], right: Sequence[Yielded], *, whole: bool = True) -> Strip:
    """The strip of a case's paired values and its reference's, in order; evidence on either side is left out.

    With `whole=False` (the case stopped early: it raised, or was stopped) the strip ends with the case's last value, since
    what it never came to show is not a wrong value.
    """
    observed = [(step, value) for step, value in seen if step in STEPS]
    correct = [(step, value) for step, value in right if step in STEPS]
    if not whole:
        correct = correct[: len(observed)]
    return tuple(
        Cell(
            (left or right_one or ("replay", None))[0],
            left[1] if left else MISSING,
            right_one[1] if right_one else MISSING,
        )
        for left, right_one in zip_longest(observed, correct)
    )


def is_correct(strip: Strip, tolerance: float = 0.0) -> bool:
    """True where no cell differs."""
    return not any(cell.differs(tolerance) for cell in strip)
