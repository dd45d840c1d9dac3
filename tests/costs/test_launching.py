"""The process of a visit: what is started really is the measuring side, and it does not outlive its driver."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from toybox import SOURCE

TALKING = """
import json, os, sys
asked = json.load(sys.stdin)
for name in asked["workloads"]:
    print(json.dumps({"subject": name, "version": __name__, "metrics": {"nodes": [1]}}), flush=True)
print(json.dumps({"end": {}}), flush=True)
"""
TICKING = """
import os, sys, time
while True:
    print(os.getpid(), file=open(os.environ["TRACE"], "a"), flush=True)
    time.sleep(0.05)
"""
DRIVER = """
import sys
from pathlib import Path
from replaydrift.costs import launching
launching.PACKAGE = Path(sys.argv[1])
request = {"engine": "model", "workloads": ["chain/1", "chain/10"]}
heard = launching.listen(sys.executable, request, told=print, stopped=lambda: False)
print(heard.subjects["chain/1"].version, heard.ended)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package with another measuring side: its `__main__` is to be written."""
    folder = tmp_path / "replaydrift"
    (folder / "measuring").mkdir(parents=True)
    for name in ("__init__.py", "child"):
        (folder / name).symlink_to(SOURCE / "replaydrift" / name)
    (folder / "measuring" / "__init__.py").touch()
    return folder


def start(package: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    """A driver that listens to this measuring side."""
    (package / "measuring" / "__main__.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("TRACE", str(package / "trace"))
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(package)], text=True, stdout=subprocess.PIPE)


def test_the_measuring_side_is_started_with_any_python(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is `replaydrift.measuring`, run as a program; a large request reaches it whole, and each subject is told when it ends."""
    with start(package, TALKING, monkeypatch) as driver:
        assert driver.communicate(timeout=60)[0].split() == ["chain/1", "chain/10", "__main__", "True"]


def test_a_visit_does_not_outlive_its_driver(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is killed takes the process of its visit with it: nothing goes on measuring."""
    trace = package / "trace"
    with start(package, TICKING, monkeypatch) as driver:
        give_up = time.monotonic() + 60
        while not trace.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        driver.kill()
    time.sleep(0.3)
    before = trace.read_text()
    time.sleep(0.4)
    assert before
    assert trace.read_text() == before
