"""How long `publish` takes, asv's site included, and what memory it peaks at: a synthetic store, printed beside its targets.

python benchmarks/publish_speed.py [--releases 100] [--cases 500] [--machines 3]
"""

# ruff: noqa: PLC0415 - asv imports every file of this folder to look for benchmarks, so imports wait until this one runs.

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

TARGET_S, TARGET_GIB = 120, 1.0
CASES_A_GROUP, ATTEMPTS, STEPS = 4, 3, 6


def main() -> None:
    """Make the store, publish it, print time and memory; exit code 1 where a target is missed."""
    from replaydrift.history import publish
    from replaydrift.releases import Entry, Table
    from replaydrift.store import Store

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("releases", 100), ("cases", 500), ("machines", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    size = parser.parse_args()
    first = dt.date(2020, 1, 1)
    table = Table(
        tuple(
            Entry(f"2.{number}.0", first + dt.timedelta(days=30 * number), "13.0", "580", ((3, 11),)) for number in range(size.releases)
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "results")
        print(f"makes a store of {size.releases} releases × {size.cases} cases × {size.machines} machines")
        make_store(store, [f"{entry.version}+cu130" for entry in table.entries], size.cases, size.machines)
        memory = Memory()
        begun = time.monotonic()
        page = publish(store, Path(folder) / "reports" / "asv", table=table, copies=False)
        seconds, gib = time.monotonic() - begun, memory.stop() / 2**30
        assert page is not None
        assert page.is_file()
    print(f"publish: {seconds:.1f} s (target {TARGET_S} s), peak memory of all its processes {gib:.2f} GiB (target {TARGET_GIB:.0f} GiB)")
    sys.exit(seconds > TARGET_S or gib > TARGET_GIB)


def make_store(store, releases: list[str], cases: int, machines: int) -> None:
    """Files as a sweep writes them, but at once: each case is right up to some release and wrong from there on."""
    from replaydrift import records

    chance = random.Random(7)  # noqa: S311 - the same numbers each time
    turns = [chance.randrange(2 * len(releases)) for _ in range(cases)]
    for machine in (f"machine{number}" for number in range(machines)):
        for place, release in enumerate(releases):
            folder = store.folder(machine, release)
            folder.mkdir(parents=True)
            belongs = {"schema": records.SCHEMA, "machine": machine, "engine": "cuda", "release": release}
            facts = {"gpu": {"name": "NVIDIA H200"}, "torch": {"version": release}}
            (folder / "_environment.json").write_text(json.dumps(belongs | {"facts": facts, "recorded": f"2026-01-01T00:00:{place:02}"}))
            for number in range(0, cases, CASES_A_GROUP):
                group = f"group{number // CASES_A_GROUP}"
                tree = {f"case{case}": made(place >= turns[case], chance) for case in range(number, min(number + CASES_A_GROUP, cases))}
                (folder / f"{group}.json").write_text(json.dumps(belongs | {"group": group, "cases": tree}))


def made(wrong: bool, chance: random.Random) -> dict:
    """The JSON of a case's record: three attempts that agree, with a strip of some steps and a capture time each."""
    strip = [{"step": "replay", "observed": step * (1 - wrong), "correct": step} for step in range(1, STEPS + 1)]
    outcome = "wrong" if wrong else "correct"
    attempts = [
        {"outcome": outcome, "strip": strip, "duration_ms": 400 * chance.random(), "capture_ms": 100 + 5 * chance.random()}
        for _ in range(ATTEMPTS)
    ]
    return {"kind": "bug", "version": "0123456789ab", "attempts": attempts}


class Memory(threading.Thread):
    """The highest sum, in bytes, of what this process and all it started hold in memory; shared pages count once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self._ended = 0, threading.Event()
        self.start()

    def run(self) -> None:
        """Look four times a second."""
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, sum(self._held(pid) for pid in self._family()))

    def stop(self) -> int:
        """The peak; nothing is looked at any more."""
        self._ended.set()
        self.join()
        return self.peak

    @staticmethod
    def _family() -> set[int]:
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except (OSError, ValueError, IndexError):
                    continue  # It ended while it was looked at.
        family = {os.getpid()}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        return family

    @staticmethod
    def _held(pid: int) -> int:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            return 0
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
