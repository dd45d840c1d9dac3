"""Tests of releases: names, order, the table, and which stored release a name means."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift import releases, stored_releases
from replaydrift.errors import ReleaseError
from replaydrift.releases import Release, read_table

PROJECT = Path(__file__).resolve().parents[1]
TABLE = read_table(PROJECT / "torch-releases.toml")


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        ("2.14.1", "2.14.1", None),
        ("2.14.1+cu126", "2.14.1", "cu126"),
        ("2.14.1+cpu", "2.14.1", "cpu"),
        ("2.16.0.dev20261101", "2.16.0.dev20261101", None),
        ("2.16.0.dev20261101+cu132", "2.16.0.dev20261101", "cu132"),
        ("2.9.0a0+50eac811a6.nv25.09", "2.9.0a0", "50eac811a6.nv25.09"),
    ],
)
def test_a_name_is_a_version_and_a_build(text, version, build):
    """Version and build come apart at the plus sign, and the name is what it was when printed again."""
    release = Release.parse(text)

    assert (version, build) == (release.version, release.build)
    assert text == str(release)


@pytest.mark.parametrize("text", ["2.14", "torch 2.14.1", "2.14.1+", "v2.14.1", "latest", "", "2.14.1+cu126/../x", "../2.14.1"])
def test_anything_else_is_no_name(text):
    """What has not the form of a release is refused with an example of the form."""
    with pytest.raises(ReleaseError, match=r"expected a form such as '2\.14\.1'"):
        Release.parse(text)


@given(st.tuples(*[st.integers(0, 30)] * 3), st.sampled_from([None, "cpu", "cu118", "cu130"]))
def test_every_name_survives_being_printed_and_read(numbers, build):
    """Parsing what a release prints gives the same release."""
    release = Release(".".join(map(str, numbers)), build)

    assert release == Release.parse(str(release))


def test_order_is_by_number_then_by_how_near_the_release_then_by_build():
    """2.9 comes before 2.10, a nightly before its release, and builds follow each other by name."""
    ordered = [
        "2.9.1", "2.10.0.dev20260101", "2.10.0.dev20260102", "2.10.0a0", "2.10.0rc1", "2.10.0", "2.10.0+cpu", "2.10.0+cu126",
        "2.10.0+cu130", "2.10.1",
    ]  # fmt: skip

    assert ordered == sorted(sorted(ordered), key=releases.order)


@pytest.mark.parametrize(
    ("asked", "printed", "met"),
    [
        ("2.14.1", "2.14.1+cu130", True),
        ("2.14.1", "2.14.1+cpu", True),
        ("2.14.1+cu126", "2.14.1+cu126", True),
        ("2.14.1+cu126", "2.14.1+cu130", False),
        ("2.14.1", "2.14.0+cu130", False),
    ],
)
def test_a_version_is_met_by_any_build_of_it(asked, printed, met):
    """A version alone is met by any build; a build is met by itself only."""
    assert met == Release.parse(asked).is_met_by(printed)


def test_the_table_goes_from_the_first_to_the_newest_without_a_step_back():
    """Versions and dates of minor releases both rise through the committed table, and each version stands in it once."""
    versions = [entry.version for entry in TABLE.entries]
    minors = [entry for entry in TABLE.entries if entry.version.endswith(".0")]

    assert versions[0] == "2.0.0"
    assert "2.15.0" in versions
    assert len(versions) == len(set(versions))
    assert all(older.date < newer.date for older, newer in itertools.pairwise(minors))


@pytest.mark.parametrize("entry", TABLE.entries, ids=lambda entry: entry.version)
def test_each_row_is_complete(entry):
    """Each row names a CUDA, a driver that its CUDA can run on, Pythons, and builds other than its own."""
    assert entry.driver == {"11": "450", "12": "525", "13": "580"}[entry.cuda.split(".")[0]]
    assert {(3, minor) for minor in (11,)} <= set(entry.pythons)
    assert entry.default_build not in entry.builds
    assert "cpu" in entry.builds
    assert entry.kept_mb is None or entry.kept_mb > entry.download_mb


def test_two_releases_run_by_default():
    """A first run shows a change between releases, so at least two run by default."""
    assert len(TABLE.defaults) >= 2


@pytest.mark.parametrize(
    ("text", "near"),
    [("2.14", "2.14.0, 2.14.1"), ("2.14.7", "2.14.0, 2.14.1"), ("9.0.0", "2.15.0"), ("newest", "2.15.0"), ("1.13.1", "2.0.0, 2.0.1")],
)
def test_an_unknown_release_is_refused_with_those_near_it(text, near):
    """Who mistypes a release is told of the nearest that there are."""
    with pytest.raises(ReleaseError, match=f"near it are .*{near}"):
        TABLE.known(text)


def test_a_nightly_needs_no_row():
    """A nightly is a new one every day, so the table does not have to list it."""
    assert str(TABLE.known("2.16.0.dev20261101")) == "2.16.0.dev20261101"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("schema = 2", "schema 2, expected 1"),
        ("schema = ", "cannot be read"),
        ("schema = 1\n[[releases]]\nversion = '2.14'", "'2.14' is no release"),
        ("schema = 1\n[[releases]]\nversion = '2.14.1'", "'date'"),
        ("schema = 1\n[[releases]]\nversion = '2.14.1+cpu'", "has a build"),
    ],
)
def test_a_damaged_table_is_refused_by_name(tmp_path, text, what):
    """A table that cannot be used is named, with what is wrong in it."""
    path = tmp_path / "torch-releases.toml"
    path.write_text(text)

    with pytest.raises(ReleaseError, match=what) as caught:
        read_table(path)

    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "stored", "meant"),
    [
        ("2.14.1", ["2.14.1+cu130", "2.14.1+cu126", "2.13.0+cu130"], "2.14.1+cu130"),
        ("2.14.1", ["2.14.1+cpu", "2.14.1+cu130"], "2.14.1+cu130"),
        ("2.14.1", ["2.14.1+cu126"], "2.14.1+cu126"),
        ("2.13.0", ["2.13.0+cpu", "2.14.1+cu130"], "2.13.0+cpu"),
        ("2.14.1+cu126", ["2.14.1+cu130", "2.14.1+cu126"], "2.14.1+cu126"),
        ("2.15.0", ["2.15.0+cu130", "2.15.0+cu132"], "2.15.0+cu132"),
    ],
)
def test_a_version_means_its_default_wheel_or_the_only_build(text, stored, meant):
    """The default wheel is meant by a version alone; where it is not stored, the only build that is."""
    assert meant == stored_releases.resolve(text, stored, TABLE)
    assert meant == stored_releases.stored(text, stored, TABLE)


@pytest.mark.parametrize(
    ("text", "stored", "message"),
    [
        ("2.14.1", ["2.14.1+cu126", "2.14.1+cpu"], "stored in 2 builds and none is the default .*: say which of 2.14.1.cpu, 2.14.1.cu126"),
        ("2.15.0", ["2.13.0+cpu", "2.9.1+cu128"], "those stored are 2.9.1.cu128, 2.13.0.cpu"),
        ("2.14.1+cu126", ["2.14.1+cu130", "2.13.0+cu130"], r"those stored are 2.14.1.cu130\. Make them"),
        ("2.14.1", [], "those stored are none"),
    ],
)
def test_a_release_that_is_not_stored_or_not_clear_lists_what_is(text, stored, message):
    """Where no single record is meant, the message lists those that could be."""
    with pytest.raises(ReleaseError, match=message):
        stored_releases.resolve(text, stored, TABLE)

    assert stored_releases.stored(text, stored, TABLE) is None


def test_default_wheels_are_one_line_whatever_their_cuda():
    """2.14.1 with CUDA 13.0 and 2.15.0 with 13.2 are both default wheels, so they are steps of one line."""
    assert stored_releases.same_line("2.14.1+cu130", "2.15.0+cu132", TABLE)
    assert stored_releases.same_line("2.13.0+cpu", "2.14.1+cu130", TABLE)
    assert not stored_releases.same_line("2.15.0+cu130", "2.15.0+cu132", TABLE)
    assert stored_releases.same_line("2.13.0+cu126", "2.14.1+cu126", TABLE)


def test_lines_are_split_by_build_and_each_is_oldest_first():
    """A build that is not its release's default forms a line of its own; a second wheel of one version never shares a line."""
    names = ["2.15.0+cu132", "2.14.1+cu126", "2.13.0+cpu", "2.14.1+cpu", "2.14.1+cu130", "2.13.0+cu126"]

    assert stored_releases.lines(names, TABLE) == [
        ["2.13.0+cpu", "2.14.1+cu130", "2.15.0+cu132"],
        ["2.14.1+cpu"],
        ["2.13.0+cu126", "2.14.1+cu126"],
    ]
    assert stored_releases.lines([], TABLE) == []
