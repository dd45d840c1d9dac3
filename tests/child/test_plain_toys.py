"""What ends as it should is recorded as it was: strips, chains, warnings, addresses, sizes."""

from __future__ import annotations

import pytest
from toybox import environ, run_toys

from replaydrift.records import Attempt, CaseRecord
from replaydrift.store import Store
from replaydrift.strip import MISSING


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CaseRecord]:
    """The stored record of each plain toy, by the name of its function; `elements` is 7 where it is taken."""
    store = Store(tmp_path_factory.mktemp("plain"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ().items():
            patch.setenv(name, value)
        swept = run_toys(store, "plain", sizes={"elements": 7})
    stored = store.read(swept.environment.machine, swept.environment.release)
    return {name.split("/")[1]: record for name, record in stored.cases.items()}


@pytest.fixture(scope="module")
def plain(records: dict[str, CaseRecord]) -> dict[str, Attempt]:
    """The one attempt of each plain toy."""
    return {name: record.attempts[0] for name, record in records.items()}


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("bug", "wrong"),
        ("fix", "correct"),
        ("fix-too-short", "wrong"),
        ("numbers", "correct"),
        ("sized", "correct"),
        ("warned", "correct"),
        ("bug-raises", "raised:RuntimeError: operation failed due to a previous error during capture"),
        ("skipped", "skipped:needs two GPUs"),
        ("skipped-reference", "skipped:its reference was skipped: needs a compiler"),
        ("lost-reference", "broken:its reference did not finish: raised:ValueError: no such thing"),
    ],
)
def test_outcome(plain: dict[str, Attempt], case: str, outcome: str) -> None:
    """A case's outcome is what it came to beside its reference."""
    assert plain[case].outcome.text == outcome


def test_tensors_become_numbers_and_lists(plain: dict[str, Attempt]) -> None:
    """A tensor of one element is stored as a number, a larger one as nested lists."""
    assert [cell.observed for cell in plain["bug"].strip] == [1, 2, [[3, 4], [5, 7]]]
    assert plain["bug"].strip[2].correct == [[3, 4], [5, 6]]


def test_a_missing_value_is_a_cell(plain: dict[str, Attempt]) -> None:
    """A case that shows less than its reference has a cell with nothing observed."""
    assert plain["fix-too-short"].strip[2].observed is MISSING


def test_addresses_are_distances(plain: dict[str, Attempt]) -> None:
    """Addresses are stored from the lowest one, and a null pointer stays one."""
    assert plain["bug"].evidence == (("address", {"scratch": "+0x200", "y": "+0x0", "none": "0x0"}),)


def test_special_numbers_survive(plain: dict[str, Attempt]) -> None:
    """NaN, infinities, large integers, complex numbers and odd text survive the way to the store and back."""
    nan, inf = {"float": "nan"}, {"float": "inf"}
    assert plain["numbers"].strip[0].observed == [nan, inf, {"float": "-inf"}, 2**70, {"complex": [1.0, nan]}, None, "\\ud800é"]


def test_the_whole_chain_is_kept(plain: dict[str, Attempt]) -> None:
    """The exception a user sees comes first with its whole text, then its context, each with its place in the case's file."""
    outer, inner = plain["bug-raises"].chain
    assert (outer.class_name, outer.text.splitlines()[1]) == ("RuntimeError", "second line")
    assert (inner.class_name, inner.text) == ("KeyError", "'the cause'")
    assert outer.where is not None
    assert inner.where is not None
    assert outer.where.startswith("plain.py:")
    assert int(outer.where.split(":")[1]) == int(inner.where.split(":")[1]) + 2


def test_warnings_are_counted(plain: dict[str, Attempt]) -> None:
    """Each warning is counted every time; those that C++ writes to stderr are taken out of it."""
    counts = {(warning.category, warning.text): warning.count for warning in plain["warned"].warnings}
    assert counts == {
        ("UserWarning", "three times"): 3,
        ("DeprecationWarning", "old"): 1,
        ("stderr", "register_generator_state is deprecated.\nUse 0x7f00 instead."): 2,
        ("stderr", "older form"): 1,
    }
    assert plain["warned"].stderr == "something else\n"


def test_captures_are_timed(plain: dict[str, Attempt]) -> None:
    """The time between `capture_begin` and `capture_end` is kept, and none where nothing was captured."""
    captured, duration = plain["fix"].capture_ms, plain["fix"].duration_ms
    assert captured is not None
    assert duration is not None
    assert 10 <= captured <= duration
    assert plain["bug"].capture_ms is None


def test_a_size_reaches_case_and_reference(records: dict[str, CaseRecord]) -> None:
    """A size asked for is passed to the case and to its reference, and kept with the record of those that take it."""
    cell = records["sized"].attempts[0].strip[0]
    assert (cell.observed, cell.correct) == (7, 7)
    assert records["sized"].options == {"elements": 7}
    assert records["bug"].options == {}
