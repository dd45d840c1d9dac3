"""An upgrade guide's facts: at which release between two ends a case changed, which cause, and what a reader does with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from making import attempt, environment, record

from replaydrift.explanations import Explanation, ExplanationError
from replaydrift.guide import DO, FIXED, NEW, STILL, WARNS, Guide, guide, read_wanted
from replaydrift.records import CaseRecord
from replaydrift.store import Store

OLD, MID, LAST = "2.13.0+cu130", "2.14.1+cu130", "2.15.0+cu132"


def put(store: Store, case: str, outcomes: Mapping[str, object], kind: str = "bug") -> None:
    """Store one case on these releases; a tuple is an outcome and the value it showed or what it warned of."""
    for release, outcome in outcomes.items():
        there = store.read("h200", release).cases if release in _releases(store) else {}
        made = record(outcome, case=case, kind=kind)  # type: ignore[arg-type]
        records: list[CaseRecord] = [*(own for name, own in there.items() if name != case), made]
        store.write(environment(release), records)


def _releases(store: Store) -> tuple[str, ...]:
    return store.releases("h200") if "h200" in store.machines() else ()


def made(store: Store, *entries: Explanation) -> Guide:
    """The guide from the first release to the last."""
    return guide(store, "h200", OLD, LAST, (), entries)


def entry(case: str, start: str, end: str, change: str, before: str, after: str, **more: str) -> Explanation:
    """An explanation whose `why` names the case, unless another is given."""
    return Explanation(case, "h200", start, end, change, before, after, more.pop("why", f"why of {case}"), "", **more)


def test_the_release_between_says_when(store: Store) -> None:
    """A case that the middle release shows as before changed with the last, one that it shows as after changed with the middle."""
    put(store, "g/late", {OLD: "correct", MID: "correct", LAST: "wrong"}, kind="fix")
    put(store, "g/early", {OLD: "correct", MID: "wrong", LAST: "wrong"}, kind="fix")
    found = made(store)
    assert {item.cases[0].change.case: item.step for item in found.of(DO)} == {"g/late": (MID, LAST), "g/early": (OLD, MID)}
    assert found.releases == (OLD, MID, LAST)


def test_both_ends_are_shown(store: Store) -> None:
    """What a reader sees is the release he leaves beside the one he goes to, also where a release between was wrong in another way."""
    put(store, "g/bug", {OLD: attempt("wrong", 5), MID: attempt("wrong", 6), LAST: "correct"})
    (item,) = made(store).items
    change = item.cases[0].change
    assert (item.section, item.step, item.shown) == (FIXED, (MID, LAST), (OLD, LAST))
    assert change.old is not None
    assert change.old.attempts[0].observed == "5"


def test_a_change_that_was_taken_back_is_none(store: Store) -> None:
    """Wrong in the middle and right at both ends: nobody who upgrades sees it."""
    put(store, "g/fix", {OLD: "correct", MID: "wrong", LAST: "correct"}, kind="fix")
    assert made(store).items == ()


def test_a_step_is_called_what_it_did(store: Store) -> None:
    """Raises, right in the middle, raises otherwise: the middle fixed it and the last broke it, whatever both ends come to."""
    put(store, "g/way", {OLD: "raised:E: one", MID: "correct", LAST: "raised:F: two"}, kind="fix")
    found = {item.step: (item.section, item.change) for item in made(store).items}
    assert found == {(OLD, MID): (NEW, "fixed"), (MID, LAST): (DO, "now-raises")}


def test_warnings_of_two_steps_are_two_items(store: Store) -> None:
    """One warning went with the middle release and one came with the last: each is told of at its own step with its own cause."""
    put(store, "g/bug", {OLD: attempt("correct", warns=("a",)), MID: "correct", LAST: attempt("correct", warns=("b",))})
    known = entry("g/bug", OLD, MID, "warnings-changed", "correct", "correct", why="a is gone")
    first, second = made(store, known).of(WARNS)
    assert (first.step, [one.why for one in first.explained_by], first.open) == ((OLD, MID), ["a is gone"], False)
    assert (second.step, second.explained_by, second.open) == ((MID, LAST), (), True)


def test_a_middle_that_cannot_tell(store: Store) -> None:
    """Where the release between skipped the case, or its attempts disagreed, no step is named."""
    put(store, "g/flaky", {OLD: "correct", LAST: "wrong"}, kind="fix")
    store.write(environment(MID), [record("correct", "wrong", "correct", case="g/flaky", kind="fix")])
    (item,) = made(store).items
    assert (item.step, item.shown) == (None, (OLD, LAST))


def test_without_a_release_between(store: Store) -> None:
    """Two releases alone are one step, and so are two of different builds, whatever else is stored."""
    put(store, "g/bug", {OLD: "wrong", LAST: "correct"})
    (item,) = made(store).items
    assert item.step == (OLD, LAST)
    put(store, "g/bug", {MID: "wrong", "2.15.0+cu126": "correct"})
    found = guide(store, "h200", OLD, "2.15.0+cu126")
    assert [item.step for item in found.items] == [(OLD, "2.15.0+cu126")]


def test_cases_of_one_cause_are_one_item(store: Store) -> None:
    """Two cases that one cause changed alike share an item; one that it changed otherwise, or at another step, has its own."""
    why = {"why": "one cause"}
    for case, step in (("g/one", MID), ("g/two", MID), ("g/three", LAST)):
        put(store, case, {OLD: "correct", MID: "wrong" if step == MID else "correct", LAST: "wrong"}, kind="fix")
    entries = [entry(case, OLD, MID, "now-wrong", "correct", "wrong", **why) for case in ("g/one", "g/two")]
    found = made(store, *entries, entry("g/three", MID, LAST, "now-wrong", "correct", "wrong", **why))
    assert [[finding.change.case for finding in item.cases] for item in found.of(DO)] == [["g/one", "g/two"], ["g/three"]]


@pytest.mark.parametrize(
    ("before", "after", "kind", "section"),
    [
        ("correct", "wrong", "fix", DO),
        ("correct", "raised:E: text", "behaviour", DO),
        ("raised:E: one", "raised:E: two", "bug", DO),
        (attempt("wrong", 5), attempt("wrong", 6), "bug", STILL),
        ("wrong", "correct", "behaviour", FIXED),
        ("raised:E: text", "correct", "bug", FIXED),
        ("raised:TypeError: no such argument", "correct", "behaviour", NEW),
        ("skipped:needs a new option", "correct", "fix", NEW),
        ("skipped:needs a new option", "wrong", "bug", None),
        ("skipped:needs a new option", "raised:E: text", "behaviour", None),
        ("correct", "skipped:no compiler", "fix", None),
    ],
)
def test_where_a_change_is_told(store: Store, before: object, after: object, kind: str, section: str | None) -> None:
    """What broke is to be done about, what a bug no longer does is fixed, what only raised or was not there is new."""
    put(store, "g/case", {OLD: before, MID: after, LAST: after}, kind=kind)
    assert [item.section for item in made(store).items] == ([section] if section else [])


def test_the_dangerous_comes_first(store: Store) -> None:
    """Silently wrong before what raises, whatever the names and steps."""
    put(store, "a/raises", {OLD: "correct", MID: "raised:E: text", LAST: "raised:E: text"}, kind="fix")
    put(store, "z/wrong", {OLD: "correct", MID: "correct", LAST: "wrong"}, kind="fix")
    assert [item.change for item in made(store).of(DO)] == ["now-wrong", "now-raises"]


GOOD = '[[guide]]\nfile = "upgrade.md"\nmachine = "h200"\nfrom = "2.13.0"\nto = "2.15.0"\n'


def test_wanted_guides(tmp_path: Path) -> None:
    """The file names them; without a file there are none."""
    path = tmp_path / "explanations.toml"
    assert read_wanted(path) == ()
    path.write_text(GOOD)
    (wanted,) = read_wanted(path)
    assert (wanted.file, wanted.machine, wanted.old, wanted.new) == ("upgrade.md", "h200", "2.13.0", "2.15.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace('to = "2.15.0"\n', ""), "guide 1: has the keys file, from, machine: expected text for file, machine, from, to"),
        (GOOD.replace('"2.15.0"', "2.15"), "guide 1: has the keys"),
        (GOOD.replace("upgrade.md", "../upgrade.md"), "guide 1: 'file' is '../upgrade.md'"),
        (GOOD.replace("upgrade.md", "index.md"), "guide 1: 'file' is 'index.md'"),
        (GOOD + GOOD, "guide 2: 'file' is 'upgrade.md', which another guide has"),
    ],
)
def test_broken_guides(tmp_path: Path, text: str, message: str) -> None:
    """A guide that cannot be written is an error with its number."""
    path = tmp_path / "explanations.toml"
    path.write_text(text)
    with pytest.raises(ExplanationError, match=message.replace("(", r"\(")):
        read_wanted(path)
