"""The report's facts, and its Markdown form."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import attempt, environment, record

from replaydrift.agreement import agreement_of
from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.comparison import compare_stores
from replaydrift.errors import StoreError
from replaydrift.floor import floor_of
from replaydrift.frames import costs, verdicts
from replaydrift.library import read_library
from replaydrift.report.escape import escape
from replaydrift.report.markdown import write_index
from replaydrift.report.overview import overview
from replaydrift.report.summary import summary, summary_matrix
from replaydrift.store import Store

RELEASES = ("2.11.0+cu130", "2.13.0+cu130", "2.14.1+cu130", "2.15.0+cu132")


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """One group with a claim about its bug."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "g.py").write_text('def eager():\n    yield "replay", 1\n\n\ndef bug():\n    """Is wrong."""\n    yield "replay", 2\n')
    (folder / "groups.toml").write_text(
        'schema = 1\n[sources.page]\ntitle = "The page"\n[groups.g]\ntitle = "G"\n'
        '[groups.g.cases.bug]\nclaims = [{ source = "page", says = "wrong" }]\n',
    )
    return read_catalogue(read_library(folder))


@pytest.fixture
def filled(store: Store) -> Store:
    """Four releases: an error, the error reworded, gone, and silently wrong again."""
    for release, seen in zip(RELEASES, ("raised:E: one", "raised:E: two", "correct", "wrong"), strict=True):
        store.write(environment(release, torch={"cuda": release[-3:]}), [record(seen, case="g/bug")])
    return store


def test_arrivals(filled: Store, catalogue: Catalogue) -> None:
    """Each release says what it changed, in the order of releases, and which toolkit came with it."""
    (machine,) = overview(filled, catalogue).machines
    assert [(check.new, [finding.change.change for finding in check.findings]) for check in machine.arrivals] == [
        (RELEASES[1], ["error-changed"]),
        (RELEASES[2], ["fixed"]),
        (RELEASES[3], ["now-wrong"]),
    ]
    assert machine.arrivals[2].environment["CUDA"] == ("130", "132")


def test_other_builds_form_a_line_of_their_own(store: Store, catalogue: Catalogue) -> None:
    """A build that is not its release's default is never held against a default wheel, so torch and toolkit stay apart."""
    for release, seen in (("2.13.0+cu130", "wrong"), ("2.13.0+cu126", "correct"), ("2.14.1+cu126", "correct")):
        store.write(environment(release), [record(seen, case="g/bug")])
    (machine,) = overview(store, catalogue).machines
    assert [(check.old, check.new) for check in machine.arrivals] == [("2.13.0+cu126", "2.14.1+cu126")]


def test_markdown(filled: Store, catalogue: Catalogue) -> None:
    """The page holds the matrix, the newest change first, and the contradicted claims."""
    text = write_index(overview(filled, catalogue))
    assert "| `g/bug` | ◆ loud | ◆ loud | ○ not reproduced | ● reproduced |" in text
    assert text.index("2.15.0+cu132 (after") < text.index("2.14.1+cu130 (after")
    assert "**Silently wrong now**: `g/bug`" in text
    assert "#### 2.14.1+cu130: 1 cases" in text
    assert "#### 2.15.0+cu132: 0 cases" in text


def test_modelled_results_say_so(store: Store, catalogue: Catalogue) -> None:
    """A verdict of the CPU model is labelled, and marked where it rests on a rule or on assumed durations."""
    plain = attempt("wrong")
    ruled = type(plain)(plain.outcome, plain.strip, rules=("a-rule",))
    store.write(environment("2.13.0+cpu", machine="model", gpu="model", engine="model"), [record(ruled, case="g/bug", timing=True)])
    report = overview(store, catalogue)
    assert "**Modelled**" in write_index(report)
    assert "● reproduced¹²" in write_index(report)
    assert "engine `model`" in summary_matrix(report)


def test_groups_that_stay_alike_share_a_row(store: Store, catalogue: Catalogue) -> None:
    """Of many groups README's matrix shows each that moved, and all others in one row whose counts are their sum; of few it shows all."""
    steady = [f"s{number}" for number in range(20)]
    for release, moving in (("2.13.0+cu130", "raised:E: x"), ("2.14.1+cu130", "wrong")):
        cases = [record(moving, case="g/bug"), *(record("correct", case=f"{group}/fix", kind="fix") for group in ("g", *steady))]
        store.write(environment(release), cases)
    lines = summary_matrix(overview(store, catalogue)).splitlines()
    assert lines[-4:-2] == ["| g | ◆1 ✓1 | ●1 ✓1 |", "| 20 groups, the same on every release | ✓20 | ✓20 |"]
    few = Store(store.root / "few")
    few.write(environment("2.13.0+cu130"), [record("correct", case="h/fix", kind="fix")])
    assert "| h | ✓1 |" in summary_matrix(overview(few, catalogue))


def test_readme_shows_gpus_and_what_is_open(store: Store, catalogue: Catalogue) -> None:
    """Where a GPU has results README shows those, how far the model agrees, each unexplained change and each flaky case."""
    for release, outcome in (("2.13.0+cu130", "correct"), ("2.14.1+cu130", "wrong")):
        store.write(environment(release), [record(outcome, case="g/bug"), record("correct", "wrong", case="g/fix", kind="fix")])
        modelled = environment(release, machine="model", gpu="model", engine="model")
        store.write(modelled, [record("correct", case="g/bug"), record("correct", case="g/fix", kind="fix")])
    report = overview(store, catalogue)
    text = summary(report, agreement_of(sweep for machine in report.machines for sweep in machine.sweeps.values()))
    assert "engine `cuda`" in text
    assert "engine `model`" not in text
    assert "1 of 2 on 2.13.0+cu130, 0 of 2 on 2.14.1+cu130" in text
    assert "- `g/bug`, 2.13.0+cu130 → 2.14.1+cu130: " in text
    assert "- `g/fix` on 2.14.1+cu130: correct 1 of 2, wrong 1 of 2" in text


def test_hostile_text() -> None:
    """What a case printed can neither break out of a table nor start markup."""
    assert escape("a|b\n<img> `x` [y](z)") == "a\\|b \\<img\\> \\`x\\` \\[y\\](z)"


def test_empty_store(store: Store, catalogue: Catalogue) -> None:
    """A store without results gives a page that says how to make some, and empty frames with their columns."""
    assert "nox -s matrix" in write_index(overview(store, catalogue))
    assert verdicts(store.root).empty
    assert "outcome" in verdicts(store.root).columns
    assert costs(store.root).empty


def test_frames(filled: Store) -> None:
    """One row an attempt, releases in order."""
    frame = verdicts(filled.root)
    assert list(frame["release"].unique()) == list(RELEASES)
    assert len(frame) == 12
    assert set(frame[frame["release"] == RELEASES[3]]["verdict"]) == {"reproduced"}


def test_floor(store: Store) -> None:
    """A case works from the release after the last one on which it did not; a gap or a later failure has no floor."""
    for release, one, two in zip(
        RELEASES, ("wrong", "raised:E: x", "correct", "correct"), ("correct", "correct", "correct", "wrong"), strict=True
    ):
        store.write(environment(release), [record(one, case="g/one", kind="fix"), record(two, case="g/two", kind="fix")])
    floor = floor_of(store, "h200", ["g/one", "g/two"])
    assert [(case.release, case.before) for case in floor.cases] == [
        (RELEASES[2], f"{RELEASES[1]}: raised:E: x 3 of 3"),
        (None, f"{RELEASES[3]}: wrong 3 of 3"),
    ]
    assert floor.together is None
    assert floor_of(store, "h200", ["g/one"]).together == RELEASES[2]


def test_two_stores_side_by_side(store: Store, tmp_path: Path) -> None:
    """Another GPU's results are listed against the reference, release by release."""
    other = Store(tmp_path / "mine")
    store.write(environment("2.13.0+cu130"), [record("wrong", case="g/bug"), record("correct", case="g/fix")])
    other.write(
        environment("2.13.0+cu130", machine="b200", gpu="NVIDIA B200"), [record("correct", case="g/bug"), record("correct", case="g/fix")]
    )
    (comparison,) = compare_stores(store, "h200", other, "b200")
    assert [change.case for change in comparison.differing] == ["g/bug"]
    assert comparison.same == 1
    assert comparison.environment["GPU"] == ("NVIDIA H200", "NVIDIA B200")
    other.write(environment("2.14.1+cu130", machine="c", gpu="C"), [record("wrong")])
    with pytest.raises(StoreError, match="no release in common"):
        compare_stores(store, "h200", other, "c")


def test_engines_are_never_compared_as_machines(store: Store) -> None:
    """The CPU model is held against a GPU by `agreement`, not by `compare`."""
    store.write(environment("2.13.0+cu130"), [record("wrong")])
    store.write(environment("2.13.0+cpu", machine="model", gpu="model", engine="model"), [record("wrong")])
    with pytest.raises(StoreError, match="engines differ.*replaydrift agreement"):
        compare_stores(store, "h200", store, "model")
