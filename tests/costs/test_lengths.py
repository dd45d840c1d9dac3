"""Lengths of requests: traces that are always the same, and files of a person's own."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

import pytest

from replaydrift.costs.lengths import LONGEST, REQUESTS, TRACES, read_trace, trace
from replaydrift.errors import TraceError


@pytest.mark.parametrize(
    ("name", "total", "mark"),
    [
        ("uniform", 66792, 8390952),
        ("clustered", 43789, 5514740),
        ("long-tailed", 15209, 1891260),
        ("requests", 46888, 6366216),
    ],
)
def test_a_trace_never_changes(name: str, total: int, mark: int) -> None:
    """Costs of two days compare only if the lengths are the same ones in the same order."""
    lengths = trace(name)
    assert len(lengths) == REQUESTS
    assert all(1 <= length <= LONGEST for length in lengths)
    assert (sum(lengths), sum(place * length for place, length in enumerate(lengths))) == (total, mark)


def test_traces_look_as_they_are_named() -> None:
    """Uniform lengths are spread evenly, clustered ones leave gaps, a long tail is mostly short."""
    assert set(TRACES) == {"uniform", "clustered", "long-tailed", "requests"}
    assert 200 < statistics.mean(trace("uniform")) < 310
    assert not [length for length in trace("clustered") if 110 < length < 150]
    tail = trace("long-tailed")
    assert statistics.median(tail) < 50
    assert max(tail) > 300
    assert Counter(trace("requests"))[LONGEST] > 5  # Documents that were cut off.


def test_an_unknown_trace() -> None:
    """The message lists the traces there are."""
    with pytest.raises(TraceError, match="expected one of uniform, clustered, long-tailed, requests"):
        trace("normal")


def write(folder: Path, text: str | bytes) -> Path:
    """A file with this text."""
    path = folder / "trace.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "column", "counts"),
    [
        ("3\n5\n3\n", None, {3: 2, 5: 1}),
        ("tokens\n3\n5\n\n3\n", None, {3: 2, 5: 1}),
        ("\ufefflength\r\n 7 \r\n", None, {7: 1}),
        ("time,length\n0.5,3\n0.7,4.0\n", None, {3: 1, 4: 1}),
        ("time,tokens\n0.5,3\n0.7,4\n", "tokens", {3: 1, 4: 1}),
        ("length,count\n3,10\n4,0\n5,1\n", None, {3: 10, 5: 1}),
        ('count,"out put"\n2,3\n', "out put", {3: 2}),
        ("count\n3\n3\n", None, {3: 2}),
    ],
)
def test_files(tmp_path: Path, text: str, column: str | None, counts: dict[int, int]) -> None:
    """One column, a named one among several, or lengths with how often each occurs."""
    assert read_trace(write(tmp_path, text), column) == counts


@pytest.mark.parametrize(
    ("text", "column", "match"),
    [
        ("", None, "is empty: expected one length a line"),
        ("length\n", None, "holds no length"),
        ("length,count\n4,0\n", None, "holds no length"),
        ("3\nx\n", None, r"line 2: found 'x', expected a whole number from 1 to"),
        ("length\n3\n0\n", None, r"line 3: found '0' in column 'length', expected a whole number from 1 to"),
        ("length\n3\n2.5\n", None, "found '2.5'"),
        ("length\nnan\n", None, "found 'nan'"),
        ("length,count\n3\n", None, "line 2: found '' in column 'count'"),
        ("length,count\n3,-1\n", None, "found '-1' in column 'count', expected a whole number of at least 0"),
        ("a,b\n3,4\n", None, "none is named 'length': say --column NAME; they are 'a', 'b'"),
        ("3,4\n", None, "add a line of names, and say --column NAME"),
        ("a,b\n3,4\n", "c", "no column 'c': its columns are 'a', 'b'"),
        ("3\n", "c", "no column 'c': it has no line of names"),
        (b"\xff\xfe\n", None, "cannot be read as CSV"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str | bytes, column: str | None, match: str) -> None:
    """The message says which line, what was found and what was expected."""
    with pytest.raises(TraceError, match=match):
        read_trace(write(tmp_path, text), column)


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that is not there is named."""
    with pytest.raises(TraceError, match=r"no file .*nowhere\.csv"):
        read_trace(tmp_path / "nowhere.csv")
