"""Lengths of requests: traces made here, the same ones everywhere and always, and a person's own, read from a CSV file.

A made trace depends on its name alone. Its lengths come from the raw stream of a seeded generator (the one method of
`random.Random` that Python promises to keep) through formulas written here, so that costs of different days compare.
"""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Final, NamedTuple

from replaydrift.errors import TraceError

# Of a person's own lengths; what is longer is a time stamp or an identifier, not the length of a request.
MOST: Final = 1 << 24
LONGEST: Final = 512
REQUESTS: Final = 256
_SEED: Final = 20240607
_LENGTH, _COUNT = "length", "count"
_CLUSTERS: Final = ((64, 0.5), (192, 0.8), (448, 1.0))  # Centre, and the share of requests around it or a smaller one.
_SPREAD: Final = 9.0  # Standard deviation of a cluster, in elements of length.


def trace(name: str) -> tuple[int, ...]:
    """The lengths of the trace of this name, in the order of their arrival: 256 whole numbers from 1 to 512.

    TraceError names the traces there are.
    """
    if name not in TRACES:
        raise TraceError(f"there is no trace {name!r}: expected one of {', '.join(TRACES)}")
    chance = random.Random(_SEED)  # noqa: S311 - the same numbers each time are the point
    return tuple(min(max(round(length), 1), LONGEST) for length, _ in zip(TRACES[name](chance.random), range(REQUESTS), strict=False))


def _uniform(draw: Callable[[], float]) -> Iterator[float]:
    while True:
        yield 0.5 + LONGEST * draw()


def _clustered(draw: Callable[[], float]) -> Iterator[float]:
    while True:
        place = draw()
        centre = next(centre for centre, upto in _CLUSTERS if place < upto)
        yield centre + _SPREAD * _normal(draw)


def _long_tailed(draw: Callable[[], float]) -> Iterator[float]:
    while True:
        yield 40 * math.exp(0.9 * _normal(draw))


def _requests(draw: Callable[[], float]) -> Iterator[float]:
    """What a service might see; an invention, not a recording.

    Most requests are one of two prompts with a little text of the user's in them, many are chat of any length, some are documents
    that are cut off at the limit. They come in runs: a client sends several of a kind.
    """
    while True:
        kind, run = draw(), 1 + int(6 * draw())
        for _ in range(run):
            if kind < 0.3:
                yield 90 + 12 * -math.log(1 - draw())
            elif kind < 0.5:
                yield 210 + 25 * -math.log(1 - draw())
            elif kind < 0.88:
                yield 55 * math.exp(0.8 * _normal(draw))
            else:
                yield 420 * math.exp(0.5 * _normal(draw))


def _normal(draw: Callable[[], float]) -> float:
    return NormalDist().inv_cdf(min(max(draw(), 1e-12), 1 - 1e-12))


# What lengths may look like; `requests` is the one that a service might see.
TRACES: Final[Mapping[str, Callable[[Callable[[], float]], Iterator[float]]]] = {
    "uniform": _uniform,
    "clustered": _clustered,
    "long-tailed": _long_tailed,
    "requests": _requests,
}


class Column(NamedTuple):
    """A column of the file: where it is in a row, and what the header calls it; no name where there is no header."""

    place: int
    name: str


def read_trace(path: Path, column: str | None = None) -> Counter[int]:
    """How often each length occurs in the CSV file at `path`.

    One length a line, with or without a line of names above it. Of several columns the one named `column` is read, else the one
    named `length`; a column named `count` says how many requests a line stands for. Empty lines are passed over.
    TraceError names the line and what was found there.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except FileNotFoundError:
        raise TraceError(f"no file {str(path)!r}: expected the lengths of your requests, one a line") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{str(path)!r} cannot be read as CSV: {error}; expected text with one length a line") from error
    if not rows:
        raise TraceError(f"{str(path)!r} is empty: expected one length a line")
    lengths, counts, rows = _columns(path, rows, column)
    found: Counter[int] = Counter()
    for line, row in rows:
        count = _whole(path, line, row, counts, least=0) if counts else 1
        length = _whole(path, line, row, lengths, least=1, most=MOST)
        if count:
            found[length] += count
    if not found:
        above = f" below the header {lengths.name!r}" if lengths.name else ""
        raise TraceError(f"{str(path)!r} holds no length{above}: expected at least one line with one")
    return found


def _columns(
    path: Path, rows: list[tuple[int, list[str]]], wanted: str | None,
) -> tuple[Column, Column | None, list[tuple[int, list[str]]]]:  # fmt: skip
    """The column of lengths, that of counts if there is one, and the rows below the header."""
    names = [cell.strip() for cell in rows[0][1]]
    headless = all(_number(cell) is not None for cell in names)
    if wanted is not None:
        if headless or wanted not in names:
            listed = "it has no line of names" if headless else f"its columns are {', '.join(map(repr, names))}"
            raise TraceError(f"{str(path)!r} has no column {wanted!r}: {listed}")
        lengths = Column(names.index(wanted), wanted)
    elif len(names) == 1:
        lengths = Column(0, "" if headless else names[0])
    elif not headless and _LENGTH in names:
        lengths = Column(names.index(_LENGTH), _LENGTH)
    else:
        todo = "add a line of names, and say --column NAME" if headless else f"say --column NAME; they are {', '.join(map(repr, names))}"
        raise TraceError(f"{str(path)!r} has {len(names)} columns and none is named {_LENGTH!r}: {todo}")
    counts = Column(names.index(_COUNT), _COUNT) if not headless and _COUNT in names and lengths.name != _COUNT else None
    return lengths, counts, rows if headless else rows[1:]


def _whole(path: Path, line: int, row: list[str], column: Column, least: int, most: float = math.inf) -> int:
    """The whole number in this column of a row."""
    text = row[column.place].strip() if column.place < len(row) else ""
    value = _number(text)
    if value is None or value != int(value) or not least <= value <= most:
        where = f" in column {column.name!r}" if column.name else ""
        limits = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
        raise TraceError(f"{str(path)!r}, line {line}: found {text!r}{where}, expected a whole number {limits}")
    return int(value)


def _number(text: str) -> float | None:
    """The finite number that the text is, else None; `128.0`, as pandas writes a column with gaps, is one."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
