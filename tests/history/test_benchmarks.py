"""The asv benchmarks of the cases: what asv discovers, and that a group runs once and fills the store."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.suite import WORKLOADS
from replaydrift.history.cost_lines import cost_benchmark, cost_benchmark_name
from replaydrift.history.result_files import KINDS, benchmark, benchmark_name
from replaydrift.library import read_library
from replaydrift.measuring.workloads import version_of
from replaydrift.store import Store

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """The module of benchmarks, as asv imports it, in the folder that asv would start it in."""
    pytest.importorskip("rich")
    monkeypatch.syspath_prepend(PROJECT)
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHON", "RELEASE", "MACHINE"):
        monkeypatch.delenv(f"REPLAYDRIFT_{name}", raising=False)
    yield importlib.import_module("benchmarks.verdicts")
    for name in ("benchmarks.costs", "benchmarks.verdicts", "benchmarks"):
        sys.modules.pop(name, None)


def test_asv_discovers_what_publish_derives(tmp_path: Path) -> None:
    """Discovery finds three benchmarks a case and the costs of workloads, each with the name, version, unit and title that publish writes."""
    spec = find_spec("asv")
    if spec is None or spec.origin is None:
        pytest.skip("asv is not installed")
    script = Path(spec.origin).with_name("benchmark.py")
    done = subprocess.run(
        [sys.executable, script, "discover", PROJECT / "benchmarks", tmp_path / "found.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {entry["name"]: entry for entry in json.loads((tmp_path / "found.json").read_text())}
    cases = read_library(PROJECT / "cases").cases
    expected = {benchmark_name(case.name, kind): benchmark(case.name, kind, case.version) for case in cases for kind in KINDS}
    for subject in WORKLOADS:
        for metric in ("replay_gpu_us", "capture_ms", "nodes"):
            version = version_of(subject.partition("/")[0])
            expected[cost_benchmark_name(subject, metric)] = cost_benchmark(subject, METRICS[metric], version)
    costs = {name for name in found if ".track_cost_" in name}
    assert found.keys() - costs == {name for name in expected if ".track_cost_" not in name}
    assert costs == {cost_benchmark_name(subject, metric) for subject in WORKLOADS for metric in METRICS} & costs
    for key in ("version", "unit", "type", "pretty_name", "timeout", "params"):
        wanted = {name: entry[key] for name, entry in expected.items() if key in entry}
        assert {name: found[name][key] for name in wanted} == wanted, key


def test_a_group_runs_once_for_all_its_numbers(verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first benchmark of a group runs it, the others read what it left; a number that a case lacks counts as skipped."""
    ran: list[str] = []

    def run_group(group: str) -> dict[str, float | None]:
        ran.append(group)
        return {"rng.default_auto.track_verdict": 1, "rng.default_auto.track_differs_from_baseline": None}

    monkeypatch.setattr(verdicts, "run_group", run_group)
    folder = verdicts.setup_cache()
    assert getattr(verdicts, "rng.default_auto.track_verdict")(folder) == 1
    assert getattr(verdicts, "rng.default_auto.track_differs_from_baseline")(folder) is None
    assert math.isnan(getattr(verdicts, "rng.default_auto.track_capture_ms")(folder))
    assert ran == ["rng"]


def test_nothing_runs_without_the_interpreter(verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the release has no environment the benchmarks are not begun, and the error is the command that makes it."""
    monkeypatch.setattr(verdicts, "PYTHON", "/nowhere/torch-2.14.1/bin/python")
    monkeypatch.setattr(verdicts, "RELEASE", "2.14.1")
    with pytest.raises(verdicts.RunError, match="nox -s matrix -- --release 2.14.1"):
        verdicts.setup_cache()


def test_a_group_fills_the_store(verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside a real torch a group's benchmarks leave its records in the store, and give the numbers that these stand for."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("REPLAYDRIFT_RESULTS", str(tmp_path / "results"))
    folder = verdicts.setup_cache()
    assert getattr(verdicts, "rng.default_registered.track_verdict")(folder) == 1
    assert getattr(verdicts, "rng.default_registered.track_differs_from_baseline")(folder) == 0
    store = Store(tmp_path / "results")
    (machine,) = store.machines()
    sweep = store.read(machine, torch.__version__)
    assert set(sweep.cases) == {case.name for case in verdicts.LIBRARY.group("rng").cases}


@pytest.mark.usefixtures("verdicts")
def test_costs_are_measured_once_and_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Beside a real torch the first benchmark of costs makes a visit, which is in the store; on the CPU model only counts have numbers."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("REPLAYDRIFT_RESULTS", str(tmp_path / "results"))
    costs = importlib.import_module("benchmarks.costs")
    monkeypatch.setattr(costs, "WORKLOADS", ("chain/10",))
    folder = costs.setup_cache()

    assert getattr(costs, "chain.10.track_cost_nodes")(folder) == 10
    assert math.isnan(getattr(costs, "chain.10.track_cost_replay_gpu_us")(folder)) is not torch.cuda.is_available()
    store = CostStore(tmp_path / "results")
    (machine,) = store.machines()
    (block,) = store.blocks(machine)
    assert [one.environment.release for one in store.read_block(machine, block)] == [torch.__version__]
