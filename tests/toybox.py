"""Running toy cases through the real server, with the fake torch beside these tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.library import read_library
from replaydrift.plan import Planned
from replaydrift.records import Attempt, Environment
from replaydrift.store import Store
from replaydrift.sweep import Swept, Wishes, sweep

HERE = Path(__file__).parent
TOYS = HERE / "toys"
FAKE_TORCH = HERE / "faketorch"
SOURCE = HERE.parent / "src"


def environ(**more: str) -> dict[str, str]:
    """The environment in which an interpreter finds the fake torch and nothing of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "TORCH", "PYTORCH_", "NCCL_", "PYTHON"))}
    return kept | {"PYTHONPATH": str(FAKE_TORCH)} | more


def catalogue(folder: Path = TOYS) -> Catalogue:
    """The catalogue of a folder of toys."""
    return read_catalogue(read_library(folder))


def run_toys(store: Store, *patterns: str, folder: Path = TOYS, watcher: Watcher | None = None, **wishes: Any) -> Swept:
    """A sweep of the toys that match. The fake torch must be on PYTHONPATH: see the fixture `fake_torch`."""
    toys = catalogue(folder)
    wanted = Wishes(**{"python": sys.executable, "attempts": 1, "jobs": 4, **wishes})
    return sweep(wanted, toys, toys.library.select(patterns), store, watcher or Watcher())


class Watcher:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.totals: tuple[int, int] | None = None

    def doing(self, what: str) -> None:
        """Note what begins."""
        self.told.append(what)

    def begun(self, environment: Environment, done: int, total: int) -> None:
        """Note how much there is to do."""
        self.totals = done, total

    def attempted(self, done: int) -> None:
        """Note that an attempt ended."""
        self.told.append(f"attempt {done}")

    def judged(self, planned: Planned, number: int, attempt: Attempt) -> None:
        """Note what an attempt came to."""
        self.told.append(f"{planned.case.name} #{number} {attempt.outcome.text}")


def processes_named(text: str) -> list[int]:
    """The pids whose command line holds the text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in line:
                found.append(int(entry.name))
    return found


def only(attempts: Iterable[Attempt]) -> Attempt:
    """The one attempt there is."""
    (attempt,) = attempts
    return attempt
