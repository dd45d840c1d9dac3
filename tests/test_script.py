"""A case as a stand-alone script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from replaydrift.errors import LibraryError
from replaydrift.library import read_library
from replaydrift.script import find_case, script_of

TORCH = """
__version__ = "0"


class Tensor:
    pass


class cuda:
    @staticmethod
    def get_device_name():
        return "none"
"""
FILE = '''"""A chapter."""

import math
import os
import torch

# Four, because.
SIZE = 4
UNUSED = 5


def _helper():
    """Four."""
    return SIZE + math.floor(0.5)


def eager():
    """Right."""
    yield "replay", 4


def fix():
    """Right too."""
    yield "address", {"x": 1}
    yield "replay", _helper()


def bug():
    """Wrong."""
    yield "replay", 5
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library of one group, and a torch that only has a name."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "g.py").write_text(FILE)
    (tmp_path / "torch.py").write_text(TORCH)
    return tmp_path


def run(folder: Path, case: str) -> subprocess.CompletedProcess[str]:
    """The script of a case, run by itself in a folder where it finds the nameless torch."""
    path = folder / "script.py"
    path.write_text(script_of(find_case(read_library(folder / "cases"), case)))
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60, check=False)


def test_holds_what_the_case_uses_and_no_more(folder: Path) -> None:
    """Helpers, constants with their comments, imports and the reference are in it; the rest of the file is not."""
    text = script_of(find_case(read_library(folder / "cases"), "g/fix"))
    assert "# Four, because.\nSIZE = 4" in text
    assert "import math\nimport torch\n" in text
    assert "UNUSED" not in text
    assert "import os" not in text
    assert "def bug" not in text
    assert "replaydrift" not in text


def test_runs_and_says_which_values_differ(folder: Path) -> None:
    """Exit code 0 where the values are right, 1 with a mark where they differ."""
    right, wrong = run(folder, "g/fix"), run(folder, "g/bug")
    assert (right.returncode, wrong.returncode) == (0, 1), right.stderr + wrong.stderr
    assert "<- differs" not in right.stdout
    assert wrong.stdout.splitlines()[-1].split() == ["replay", "5", "4", "<-", "differs"]


def test_one_case_is_expected(folder: Path) -> None:
    """A group, or a pattern of several cases, is no case."""
    with pytest.raises(LibraryError, match="names 2 cases.*expected one"):
        find_case(read_library(folder / "cases"), "g")
