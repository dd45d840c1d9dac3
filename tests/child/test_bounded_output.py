"""Output of any length is kept by its ends, and warnings of C++ are found in it however it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replaydrift.child.output import HEAD_BYTES, TAIL_BYTES, HeadTail, StderrReader

TEXT = (
    b"first\n[W1130 22:31:53.123 Graph.cpp:12] Warning: one\ntwo (function f)\n"
    b"[W Graph.cpp:3] Warning: old (function operator())\nlast [W\n[Wrong line\n"
)


@given(st.binary(max_size=3 * (HEAD_BYTES + TAIL_BYTES)), st.integers(1, 999))
def test_head_and_tail(data: bytes, step: int) -> None:
    """However it is cut, a stream keeps its first and last bytes, and all of it where it is short."""
    kept = HeadTail()
    for start in range(0, len(data), step):
        kept.feed(data[start : start + step])
    if len(data) <= HEAD_BYTES + TAIL_BYTES:
        assert kept.text() == data.decode("utf-8", "replace")
    else:
        assert kept.text().startswith(data[: HEAD_BYTES - 3].decode("utf-8", "ignore")[:10])
        assert f"… {len(data) - HEAD_BYTES - TAIL_BYTES} bytes left out …" in kept.text()


@given(st.integers(1, len(TEXT)))
def test_warnings_of_cpp(step: int) -> None:
    """Warnings are parted from the rest of stderr wherever the pipe cuts it."""
    reader = StderrReader()
    for start in range(0, len(TEXT), step):
        reader.feed(TEXT[start : start + step])
    reader.finish()
    assert reader.warnings == {"one\ntwo": 1, "old": 1}
    assert reader.rest.text() == "first\nlast [W\n[Wrong line\n"


def test_a_warning_without_a_function_is_one_line() -> None:
    """Where no `(function …)` ends a warning, what follows its first line stays in stderr."""
    reader = StderrReader()
    reader.feed(b"[W1130 22:31:53.1 a.cpp:1] Warning: alone\nnext\n")
    reader.finish()
    assert reader.warnings == {"alone": 1}
    assert reader.rest.text() == "next\n"
