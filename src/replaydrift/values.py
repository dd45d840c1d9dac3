"""Values as a record keeps them: plain JSON, with the few things JSON cannot say written as one-key objects.

A number is a number, a tensor of one element a number, a larger one nested lists. `{"float": "nan"}` stands for what
strict JSON has no token for, `{"complex": [re, im]}` for a complex number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

# A strip is read by people; a value beyond this is a tensor that a case should have reduced first.
LARGEST_VALUE_BYTES = 64 * 1024


def encode_float(number: float) -> Value:
    """The number itself where JSON has a token for it, else `{"float": "nan" | "inf" | "-inf"}`."""
    return number if math.isfinite(number) else {"float": repr(number)}


def _as_float(value: Value) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Mapping) and set(value) == {"float"}:
        return float(str(value["float"]))
    return None


def equal(observed: Value, correct: Value, tolerance: float = 0.0) -> bool:
    """True where both say the same: exact, NaN equal to NaN, numbers within `tolerance` (absolute, or relative above 1)."""
    left, right = _as_float(observed), _as_float(correct)
    if left is not None and right is not None:
        if isinstance(observed, int) and isinstance(correct, int) and not tolerance:
            return observed == correct  # Beyond 2**53 a float would call neighbours equal.
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right or abs(left - right) <= tolerance * max(1.0, abs(right))
    if isinstance(observed, list) and isinstance(correct, list):
        return len(observed) == len(correct) and all(equal(a, b, tolerance) for a, b in zip(observed, correct, strict=True))
    if isinstance(observed, dict) and isinstance(correct, dict):
        return observed.keys() == correct.keys() and all(equal(observed[key], correct[key], tolerance) for key in observed)
    return type(observed) is type(correct) and observed == correct


def show(value: Value, width: int = 40) -> str:
    """A short text for a person, at most `width` characters: `3`, `2.5`, `nan`, `[6, 6, 6, 6]`, `[1, 2, … 1024 values]`."""
    text = _show(value)
    if len(text) <= width:
        return text
    if isinstance(value, list):
        head = _show(value[0])[: width // 2]
        return f"[{head}, … {len(value)} values]"
    return text[: width - 1] + "…"


def _show(value: Value) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(_show(item) for item in value) + "]"
    if isinstance(value, dict):
        if set(value) == {"float"}:
            return str(value["float"])
        if set(value) == {"complex"} and isinstance(value["complex"], list):
            real, imaginary = value["complex"]
            return f"{_show(real)}{'' if _show(imaginary).startswith('-') else '+'}{_show(imaginary)}j"
        return "{" + ", ".join(f"{key}: {_show(item)}" for key, item in value.items()) + "}"
    return str(value)
