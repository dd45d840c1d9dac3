"""Costs from end to end: the driver, the real measuring side and a real torch, on the CPU model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from toybox import SOURCE

from replaydrift import frames
from replaydrift.cli import cli
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a block of one visit: two workloads, a policy and two cases."""
    results = tmp_path_factory.mktemp("results")
    subjects = ["chain/10", "mlp/256", "bucketing/mlp/requests/pad-to-max", "rng/default-auto", "pinned/bug-eager"]
    words = ["measure", "--engine", "model", "--python", sys.executable, "--results", str(results), "--block", "first", "--json"]
    cases = ["--cases-dir", str(SOURCE.parent / "cases")]
    result = CliRunner().invoke(cli, [*words, *cases, *(f"--subjects={name}" for name in subjects)])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["engine"] == "model"
    return results


def test_everything_that_was_asked_for_is_counted(measured: Path) -> None:
    """A chain has as many nodes as kernels, padding to the longest computes that for each request, and its results are right."""
    (costs,) = CostStore(measured).read_block("model", "first")
    (visit,) = costs.visits
    assert {name: subject.failed for name, subject in visit.subjects.items() if subject.failed} == {}
    assert costs.values("chain/10", "nodes") == (10,)
    assert costs.values("rng/default-auto", "graphs") == (1,)
    assert costs.values("pinned/bug-eager", "graphs") == (0,)
    policy = "bucketing/mlp/requests/pad-to-max"
    assert costs.values(policy, "padded_elements") > costs.values(policy, "real_elements")
    assert costs.values(policy, "wrong_results") == (0,)
    assert len(visit.subjects) == 5
    assert all(subject.version for subject in visit.subjects.values())


def test_nothing_of_the_model_is_a_time(measured: Path) -> None:
    """Its clock is no clock: exact counts alone are stored, and each is one whole number."""
    frame = frames.costs(measured)
    assert len(frame)
    assert all(METRICS[name].exact for name in frame["metric"].unique())
    assert set(frame["sample"]) == {1}
    assert all(frame["value"] == frame["value"].round())


def test_the_same_is_counted_again(measured: Path) -> None:
    """A second block of the same release counts the same: exact counts compare for equality."""
    words = ["measure", "--engine", "model", "--python", sys.executable, "--results", str(measured), "--block", "second"]
    words += ["--cases-dir", str(SOURCE.parent / "cases"), "--subjects=chain/10", "--subjects=rng/default-auto"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    store = CostStore(measured)
    first, second = (store.read_block("model", name)[0].kept[0].subjects for name in ("first", "second"))
    assert {name: first[name] for name in second} == dict(second)
