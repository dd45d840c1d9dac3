"""A small synthetic store, with a table of releases for it."""

from __future__ import annotations

import datetime as dt

import pytest
from synthetic import sweep

from replaydrift.releases import Entry, Table
from replaydrift.store import Store

CUDA = {"2.11.0": "13.0", "2.12.1": "13.0", "2.13.0": "13.0", "2.14.1": "13.0", "2.15.0": "13.2"}


@pytest.fixture(scope="session")
def table() -> Table:
    """Five releases a hundred days apart."""
    day = dt.date(2026, 1, 1)
    rows = [Entry(name, day + dt.timedelta(days=100 * n), cuda, "580", ((3, 11),)) for n, (name, cuda) in enumerate(CUDA.items())]
    return Table(tuple(rows))


@pytest.fixture
def filled(store: Store) -> Store:
    """Two machines; on the GPU `fix-registered` is silently wrong from 2.14.1 on, and a build of its own is stored besides."""
    for release in ("2.11.0+cu130", "2.13.0+cu130"):
        sweep(store, release, fix_registered="correct", bug="wrong", fix_skipped="skipped:needs a compiler", fix_broken="broken:disk")
    sweep(store, "2.14.1+cu130", fix_registered="wrong", bug="wrong", fix_skipped="skipped:needs a compiler", fix_broken="correct")
    sweep(store, "2.14.1+cu126", fix_registered="correct", bug="wrong")
    sweep(store, "2.15.0+cu132", fix_registered="wrong", bug=["wrong", "correct", "wrong"], fix_broken="correct")
    for release in ("2.13.0+cpu", "2.15.0+cu132"):
        sweep(store, release, machine="model", fix_registered="correct", bug="wrong")
    return store
