"""Prices that a person measured of a model of their own: a CSV file with a line a length."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Final

from replaydrift.costs.advice import Prices
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError

# The columns: what they become, and what a number in them is multiplied by.
_COLUMNS: Final = {"step_us": ("step", 1.0), "eager_us": ("eager", 1.0), "capture_ms": ("capture", 1000.0), "pool_bytes": ("pool_bytes", 1.0)}


def read_prices(path: Path) -> Prices:
    """The prices in the CSV file at `path`, which has a line of names: `length` and `step_us`, and any of `eager_us`, `capture_ms`, `pool_bytes`.

    A cell may be empty where a length was not measured. TraceError names the line and what was found there.
    """
    points: dict[str, list[tuple[int, float]]] = {name: [] for name in _COLUMNS}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            names = [name.strip() for name in reader.fieldnames or ()]
            unknown = [name for name in names if name not in ("length", *_COLUMNS)]
            if unknown or not {"length", "step_us"} <= set(names):
                raise TraceError(f"{str(path)!r} has the columns {names}: expected length, step_us and any of eager_us, capture_ms, pool_bytes")
            reader.fieldnames = names
            for row in reader:
                length = _number(path, reader.line_num, "length", row["length"])
                if length is None or length != int(length):
                    raise TraceError(f"{str(path)!r}, line {reader.line_num}: found {row['length']!r} in column 'length', expected a whole number")
                for name, column in points.items():
                    value = _number(path, reader.line_num, name, row.get(name))
                    if value is not None:
                        column.append((int(length), value * _COLUMNS[name][1]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{str(path)!r} cannot be read as CSV: {error}; expected the columns length and step_us") from error
    curves = {
        _COLUMNS[name][0]: StepCost(tuple(column), "bytes" if name.endswith("bytes") else "µs") for name, column in points.items() if column
    }
    if "step" not in curves:
        raise TraceError(f"{str(path)!r} holds no cost: expected at least one line with a length and its step_us")
    lengths = ", ".join(str(length) for length, _ in curves["step"].points)
    return Prices(f"A request costs what {str(path)!r} says of lengths {lengths}.", **curves)


def _number(path: Path, line: int, name: str, text: str | None) -> float | None:
    """The number of a cell; None where it is empty."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise TraceError(f"{str(path)!r}, line {line}: found {text!r} in column {name!r}, expected a number of at least 0")
    return value
