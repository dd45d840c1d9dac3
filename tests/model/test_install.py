"""What the model refuses to be installed in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(("release", "refused"), [("2.10.0+cu128", True), ("2.11.0+cu130", False), ("3.0.0", False)])
def test_a_release_older_than_the_rules_is_refused(release: str, refused: bool) -> None:
    """A torch about which the written rules say nothing gets no verdicts rather than wrong ones."""
    program = f"import torch, replaydrift.model\ntorch.__version__ = {release!r}\nreplaydrift.model.install()\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert (done.returncode != 0) is refused, done.stderr
    assert (f"found torch {release}: the CPU model knows torch 2.11 and newer" in done.stderr) is refused
