"""What many tests need: records made in one line, and a store in a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydrift.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "results")
