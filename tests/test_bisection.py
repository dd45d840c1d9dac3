"""The search for the release where something changed: few looks, every step that was seen, and honest about what cannot be told."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from making import attempt, environment, record
from toybox import HERE

from replaydrift.bisection import Bisection, bisect, candidates, narrow, steps, stored_results
from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.cli import cli
from replaydrift.errors import ReleaseError, RunError
from replaydrift.library import read_library
from replaydrift.records import CaseRecord
from replaydrift.releases import read_table
from replaydrift.store import Store

NAMES = ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
CASE = "drift/fix-new"


@pytest.fixture(scope="module")
def drift() -> Catalogue:
    """The toys that differ from release to release."""
    return read_catalogue(read_library(HERE / "toys_releases"))


def differ(one: object, two: object) -> bool:
    """Two places are told apart by what was seen there."""
    return one != two


class Releases:
    """Releases with a record each, counted as they are run; one whose record is None cannot be installed."""

    def __init__(self, **records: CaseRecord | None) -> None:
        self.records = {name.replace("_", ".").removeprefix("v"): made for name, made in records.items()}
        self.ran: list[str] = []

    def run(self, name: str) -> tuple[object, CaseRecord]:
        """The record of a release."""
        self.ran.append(name)
        made = self.records[name]
        if made is None:
            raise ReleaseError(f"torch {name} has no wheel for this Python")
        return environment(f"{name}+cu130"), made


def on(*outcomes: str | None) -> Releases:
    """One outcome for each of the five releases."""
    made = [None if text is None else record(text, case=CASE, kind="fix") for text in outcomes]
    return Releases(**{f"v{name.replace('.', '_')}": one for name, one in zip(NAMES, made, strict=True)})


def search(drift: Catalogue, releases: Releases, **more: object) -> Bisection:
    """The search over all five, with nothing stored."""
    given = {"stored": {}, "at_hand": lambda _: True, **more}
    return bisect(drift.library.select((CASE,))[0], NAMES, run=releases.run, **given)


@given(st.integers(1, 200), st.data())
def test_one_step_is_found_in_few_looks(intervals: int, data: st.DataObject) -> None:
    """A single step between n + 1 places is found exactly, with at most ceil(log2 n) looks."""
    step = data.draw(st.integers(1, intervals))
    looked = []

    def look(place: int) -> bool:
        looked.append(place)
        return place >= step

    seen: dict[int, bool | None] = {0: False, intervals: True}
    narrow(seen, differ, look)
    assert steps(seen, differ) == [(step - 1, step)]
    assert len(looked) == len(set(looked)) <= math.ceil(math.log2(intervals))


@given(st.lists(st.sampled_from([None, 0, 1]), min_size=0, max_size=30))
def test_places_that_say_nothing_are_stepped_over(middle: list[int | None]) -> None:
    """With holes in between, what is left between two places that differ was looked at and said nothing."""
    places: list[int | None] = [0, *middle, 1]
    seen: dict[int, int | None] = {0: 0, len(places) - 1: 1}
    narrow(seen, differ, lambda place: places[place])
    found = steps(seen, differ)
    assert found
    for start, end in found:
        assert all(seen[place] is None and places[place] is None for place in range(start + 1, end))


def test_found(drift: Catalogue) -> None:
    """The step is named with both sides; a release away from it is not run."""
    releases = on("raised:E: x", "raised:E: x", "raised:E: x", "correct", "correct")
    found = search(drift, releases)
    assert found.exit_code == 0
    assert [(step.before.release, step.after.release, step.change.change) for step in found.steps] == [
        ("2.13.0+cu130", "2.14.1+cu130", "fixed"),
    ]
    assert "2.12.1" not in releases.ran
    assert [look.why for look in found.looks if look.record is None] == ["not looked at"]


def test_not_monotone(drift: Catalogue) -> None:
    """A verdict that changed, changed back and changed again is said to be so, with each step that was seen."""
    known = {"2.12.1": "wrong", "2.13.0": "correct"}
    stored = {name: (environment(f"{name}+cu130"), record(text, case=CASE, kind="fix")) for name, text in known.items()}
    found = search(drift, on("correct", "wrong", "correct", "correct", "wrong"), stored=stored)
    assert found.exit_code == 1
    assert [step.after.release for step in found.steps] == ["2.12.1+cu130", "2.13.0+cu130", "2.15.0+cu130"]
    assert found.looked("store") == ("2.12.1+cu130", "2.13.0+cu130")


def test_a_release_that_cannot_be_had_is_named(drift: Catalogue) -> None:
    """Where the release in question cannot be installed, the answer is a range, and the exit code says that it is no more."""
    found = search(drift, on("raised:E: x", "raised:E: x", None, "correct", "correct"))
    assert found.exit_code == 2
    (step,) = found.steps
    assert (step.before.release, step.after.release) == ("2.12.1+cu130", "2.14.1+cu130")
    assert [look.why for look in step.between] == ["torch 2.13.0 has no wheel for this Python"]


def test_left_out_is_not_run(drift: Catalogue) -> None:
    """A release that a person left out is not run, and does not make the answer a doubtful one."""
    releases = on("raised:E: x", "raised:E: x", "correct", "correct", "correct")
    found = search(drift, releases, left_out={"2.13.0"})
    assert "2.13.0" not in releases.ran
    assert (found.exit_code, found.steps[0].after.release) == (0, "2.14.1+cu130")
    with pytest.raises(RunError, match=r"an end of the search, torch 2\.15\.0, is left out"):
        search(drift, releases, left_out={"2.15.0"})


def test_flaky_says_nothing(drift: Catalogue) -> None:
    """A release whose attempts disagree is told to neither side."""
    releases = on("wrong", "wrong", "wrong", "correct", "correct")
    releases.records["2.13.0"] = record("wrong", "correct", "wrong", case=CASE, kind="fix")
    found = search(drift, releases)
    assert found.exit_code == 2
    assert [look.verdict for look in found.steps[0].between] == ["flaky"]


def test_both_ends_alike(drift: Catalogue) -> None:
    """Two ends that show the same leave nothing to search for, and nothing between them is run."""
    releases = on("correct", "wrong", "correct", "wrong", "correct")
    found = search(drift, releases)
    assert (found.exit_code, found.steps, releases.ran) == (2, (), ["2.11.0", "2.15.0"])


def test_an_end_that_cannot_be_had(drift: Catalogue) -> None:
    """Where an end says nothing, nothing can be told."""
    assert search(drift, on("wrong", "wrong", "correct", "correct", None)).exit_code == 2


def test_details_are_searched_where_the_verdict_is_one(drift: Catalogue) -> None:
    """With one verdict at both ends, the change of an error's text is searched for."""
    found = search(drift, on("raised:E: old", "raised:E: old", "raised:E: new", "raised:E: new", "raised:E: new"))
    assert (found.by, found.exit_code) == ("details", 0)
    assert [(step.after.release, step.change.change) for step in found.steps] == [("2.13.0+cu130", "error-changed")]


def test_lesser_changes_install_nothing(drift: Catalogue) -> None:
    """Beside a change of verdict, one of a text is narrowed only over releases that are at hand."""
    outcomes = ("raised:E: old", "raised:E: new", "raised:E: new", "raised:E: new", "correct")
    away, near = on(*outcomes), on(*outcomes)
    assert search(drift, away, at_hand=lambda _: False).lesser[0].after.release == "2.13.0+cu130"
    assert "2.12.1" not in away.ran
    assert search(drift, near).lesser[0].after.release == "2.12.1+cu130"


def test_candidates() -> None:
    """All releases of the table between the ends, oldest first, nightlies among them, whichever end is named first."""
    table = read_table()
    names = candidates("2.15.0", "2.13.0+cu126", table, ["2.15.0.dev20260901"])
    assert names[0] == "2.13.0+cu126"
    assert names[-2:] == ["2.15.0.dev20260901", "2.15.0"]
    assert "2.14.1" in names
    assert "2.12.1" not in names
    with pytest.raises(ReleaseError, match="expected two releases"):
        candidates("2.15.0", "2.15.0", table)


def test_stored_results_are_of_this_version_with_enough_attempts(drift: Catalogue, store: Store) -> None:
    """A record of another version of the case, or of one attempt, is run again."""
    case = drift.library.select((CASE,))[0]
    good = record("correct", case=CASE, kind="fix", version=case.version)
    for release, made in (
        ("2.11.0+cu130", good),
        ("2.12.1+cu130", record("correct", case=CASE, kind="fix", version="another")),
        ("2.13.0+cu130", record(*[attempt("correct")] * 2, case=CASE, kind="fix", version=case.version)),
    ):
        store.write(environment(release), [made])
    assert list(stored_results(case, NAMES, store, "h200", drift)) == ["2.11.0"]
    assert stored_results(case, NAMES, store, None, drift) == {}


def test_a_machine_that_cannot_be_one_is_refused_at_once() -> None:
    """A name that no folder can have is no machine without results: nothing is searched or run."""
    result = CliRunner().invoke(cli, ["bisect", "rng/custom-unregistered", "--good=2.11.0", "--bad=2.15.0", "--machine=a/b", "--no-install"])
    assert "'a/b' cannot name a machine" in str(result.exception)
