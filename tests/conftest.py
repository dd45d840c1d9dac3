"""What many tests need: records made in one line, and a store in a temporary folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import toybox

from replaydrift.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "results")


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters started from here find the fake torch."""
    for name in set(os.environ) - toybox.environ().keys():
        monkeypatch.delenv(name)
    for name, value in toybox.environ().items():
        monkeypatch.setenv(name, value)
