"""The plugin of asv: benchmarks run on the environments that nox made, each commit on its own, with the real asv."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydrift.environments import STAMP
from replaydrift.history.chain import chain_of
from replaydrift.history.configuration import SETTINGS
from replaydrift.history.release_repository import build_repository
from replaydrift.releases import Table

pytest.importorskip("asv")
PROJECT = Path(__file__).resolve().parents[2]
# A benchmark that turns from 0 to 1 at 2.14.1, and knows from the plugin alone which release it runs on.
BENCHMARK = """
import os

def track_turned():
    assert os.path.exists(os.environ["REPLAYDRIFT_PYTHON"])
    assert f"/torch-{os.environ['REPLAYDRIFT_RELEASE']}/bin/python" in os.environ["REPLAYDRIFT_PYTHON"]
    return 1 + (tuple(map(int, os.environ["REPLAYDRIFT_RELEASE"].split("."))) >= (2, 14, 1))
"""


@pytest.fixture
def project(tmp_path: Path, table: Table) -> Path:
    """A folder with the derived repository, one benchmark, and environments of four of the five releases."""
    build_repository(tmp_path / "repository", chain_of((), table))
    for release in ("2.11.0", "2.13.0", "2.14.1", "2.15.0"):
        folder = tmp_path / ".nox" / f"torch-{release}"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(sys.executable)
        (folder / "pyvenv.cfg").touch()
        (folder / STAMP).write_text(json.dumps({"torch": f"{release}+cu130"}))
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "turn.py").write_text(BENCHMARK)
    places = {"repo": "repository", "results_dir": "results", "html_dir": "html", "env_dir": ".asv"}
    plugin = {"plugins": [".replaydrift.history.asv_environment"], "environment_type": "torch", "launch_method": "spawn"}
    (tmp_path / "asv.conf.json").write_text(json.dumps(SETTINGS | places | plugin))
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"h200": {"machine": "h200"}, "version": 1}))
    return tmp_path


def asv(project: Path, *words: str, expected: int = 0) -> str:
    """What asv prints in the folder, started with a machine it knows."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "NOX_"))}
    environment |= {"HOME": str(project), "PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "asv", *words], cwd=project, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_range_runs_each_release_on_its_own_interpreter(project: Path) -> None:
    """`asv run` of a range gives one result a release, all under one name, so that `asv compare` pairs them."""
    asv(project, "run", "v2.12.1..v2.14.1", "--machine", "h200")
    trees = [json.loads(path.read_text()) for path in sorted((project / "results" / "h200").glob("*-torch.json"))]
    assert {tree["date"]: tree["results"]["turn.track_turned"][0] for tree in trees} == {
        min(tree["date"] for tree in trees): [1], max(tree["date"] for tree in trees): [2],
    }  # fmt: skip
    assert {(tree["env_name"], tree["python"]) for tree in trees} == {("torch", "")}
    assert "turn.track_turned" in asv(project, "compare", "v2.13.0", "v2.14.1", "--only-changed")


def test_find_names_the_release(project: Path) -> None:
    """`asv find` over releases that have environments ends at the one where the number turned."""
    said = asv(project, "find", "v2.12.1..v2.15.0", "turn.track_turned", "--machine", "h200")
    assert said.rstrip().endswith("<v2.14.1>")


def test_continuous_fails_where_the_number_rose(project: Path) -> None:
    """`asv continuous` exits with 1 where the second release is worse, and with 0 where nothing differs."""
    said = asv(project, "continuous", "v2.13.0", "v2.15.0", "--machine", "h200", expected=1)
    assert "PERFORMANCE DECREASED" in said
    asv(project, "continuous", "v2.14.1", "v2.15.0", "--machine", "h200")


def test_a_release_without_environment_is_said_and_passed_over(project: Path) -> None:
    """Where nox has not made an environment, asv says how to make it, calls that release failed, and runs the others."""
    said = asv(project, "run", "v2.11.0..v2.13.0", "--machine", "h200", expected=2)
    assert "no environment of torch 2.12.1 yet: nox -s matrix -- --release 2.12.1" in said
    files = (project / "results" / "h200").glob("*-torch.json")
    values = [json.loads(path.read_text())["results"]["turn.track_turned"][0] for path in files]
    assert sorted(values, key=str) == [None, [1]]
