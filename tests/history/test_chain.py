"""The chain of releases: its members, its order, and the dates of what the table lacks."""

from __future__ import annotations

import datetime as dt

import pytest

from replaydrift.errors import ReleaseError
from replaydrift.history.chain import chain_of
from replaydrift.releases import Entry, Table


def entry(version: str, *date: int, cuda: str = "13.0") -> Entry:
    """A row of the table with what the chain reads of it."""
    return Entry(version, dt.date(*date), cuda, "580", ((3, 11),))


TABLE = Table((entry("2.9.0", 2025, 10, 15, cuda="12.8"), entry("2.10.0", 2026, 1, 21)))


def test_order_is_by_version() -> None:
    """The chain holds the table and what is stored besides, by version and not by text."""
    chain = chain_of(["2.9.1+cu128", "2.10.0+cu130", "2.10.0+cu126"], TABLE)
    assert [step.version for step in chain] == ["2.9.0", "2.9.1", "2.10.0"]


def test_dates_of_the_table() -> None:
    """A listed release has the table's date, at noon in UTC, and its CUDA in the message."""
    step = chain_of([], TABLE)[0]
    assert dt.datetime.fromtimestamp(step.seconds, dt.timezone.utc) == dt.datetime(2025, 10, 15, 12, tzinfo=dt.timezone.utc)
    assert step.message == "torch 2.9.0\n\nReleased on 2025-10-15.\nThe default wheel has CUDA 12.8.\n"


def test_an_unknown_date_is_the_day_after_the_release_before() -> None:
    """A release that the table lacks follows the one before it by a day, and its message says that this is no known date."""
    step = chain_of(["2.9.1"], TABLE)[1]
    assert step.date == dt.date(2025, 10, 16)
    assert "not known: placed one day after 2.9.0" in step.message


def test_a_nightly_has_its_date_in_its_name() -> None:
    """A nightly is dated by its name, and by the release before it where the name holds no date."""
    chain = chain_of(["2.11.0.dev20260301+cu130", "2.11.0.dev20269999"], TABLE)
    assert [step.date for step in chain[2:]] == [dt.date(2026, 3, 1), dt.date(2026, 3, 2)]


def test_the_first_release_without_a_date() -> None:
    """Where nothing goes before it, an undated release has a date all the same."""
    assert chain_of(["1.0.0"], Table(()))[0].date == dt.date(2000, 1, 1)


def test_a_name_that_is_no_release() -> None:
    """A folder that is named like no release is an error that names it."""
    with pytest.raises(ReleaseError, match="'latest' is no torch release"):
        chain_of(["latest"], TABLE)
