"""Costs as asv draws them: a line a block, samples with their statistics, thresholds; the costs in here are synthetic."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from making import environment

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.pace import is_pace
from replaydrift.costs.records import Block, Costs, Subject, Visit
from replaydrift.history import publish
from replaydrift.history.chain import chain_of
from replaydrift.history.cost_lines import CostPoint, cost_benchmark_name, cost_benchmarks, cost_versions, threshold, thresholds
from replaydrift.history.result_files import Machine, read_machines, write_result_files
from replaydrift.history.site import derive
from replaydrift.releases import Release, Table
from replaydrift.store import Store

OLD, NEW = "2.13.0+cu130", "2.15.0+cu132"
UPGRADE = Block("20261103-0900-upgrade", "upgrade", (OLD, NEW, NEW, OLD) * 3)


def costs(release: str, replay_us: float, block: Block = UPGRADE, version: str = "v1", **counts: int) -> Costs:
    """Costs of a chain: six processes around a time, each with three samples, and counts."""
    visits = []
    for place, number in enumerate(block.numbers(release)):
        samples = [replay_us * (1 + (place + sample - 3) / 1000) for sample in (0, 1, 2)]
        metrics = {"replay_gpu_us": tuple(samples)} | {name: (count,) for name, count in counts.items()}
        visits.append(Visit(number, "2026-11-03T09:00:00+00:00", 30.0, {"chain/1000": Subject(version, metrics)}))
    return Costs(block, environment(release), tuple(visits))


@pytest.fixture
def measured(filled: Store) -> Store:
    """The store of verdicts with two blocks of costs: replays slower and more nodes on 2.15; another block of 2.13 alone."""
    for one in (costs(OLD, 1000.0, nodes=1000), costs(NEW, 1200.0, nodes=1300)):
        CostStore(filled.root).write(one)
    alone = Block("20261201-0900-measure", "measure", (OLD,) * 6)
    CostStore(filled.root).write(costs(OLD, 5000.0, alone, nodes=1000))
    return filled


@pytest.fixture
def written(measured: Store, table: Table, tmp_path: Path) -> Path:
    """The folder of its result files."""
    machines = read_machines(measured, table)
    chain = chain_of((name for machine in machines for name in machine.names), table)
    commits = {step.version: f"{number:08x}".ljust(40, "0") for number, step in enumerate(chain, 1)}
    write_result_files(tmp_path / "results", machines, chain, commits)
    return tmp_path / "results"


def trees(folder: Path, machine: str = "h200") -> list[dict[str, Any]]:
    """The result files of a machine that hold costs."""
    found = [json.loads(path.read_text()) for path in sorted((folder / machine).glob("*.json")) if path.name != "machine.json"]
    return [tree for tree in found if "block" in tree["params"]]


def test_a_block_is_a_line_of_its_own(written: Path) -> None:
    """Two releases of one block share all parameters; another block of the same release has other ones, and verdicts have none."""
    upgrade = [tree for tree in trees(written) if tree["params"]["block"] == UPGRADE.name]
    assert len(upgrade) == 2
    assert upgrade[0]["params"] == upgrade[1]["params"]
    assert {tree["env_name"] for tree in trees(written)} == {"torch-20261103-0900-upgrade", "torch-20261201-0900-measure"}
    assert len(trees(written)) == 3


def test_samples_and_statistics(written: Path) -> None:
    """The result is the median over processes; each process gives one sample, with an interval around them that is finite."""
    name = cost_benchmark_name("chain/1000", "replay_gpu_us")
    tree = next(tree for tree in trees(written) if tree["results"][name][0][0] > 1100 and "upgrade" in tree["env_name"])
    row = dict(zip(tree["result_columns"], tree["results"][name], strict=False))
    assert row["result"] == [pytest.approx(1200 * 1.0005)]
    assert len(row["samples"][0]) == 6
    assert (row["stats_number"], row["stats_repeat"]) == ([1], [6])
    (low,), (high,) = row["stats_ci_99_a"], row["stats_ci_99_b"]
    assert low <= row["stats_q_25"][0] <= row["result"][0] <= row["stats_q_75"][0] <= high
    assert high < 1300
    count = cost_benchmark_name("chain/1000", "nodes")
    assert sorted(tree["results"][count] for tree in trees(written)) == [[[1000], [], "v1"], [[1000], [], "v1"], [[1300], [], "v1"]]


def test_one_process_has_no_interval(store: Store, table: Table) -> None:
    """What is infinite is left out: asv's files hold finite numbers."""
    CostStore(store.root).write(costs(OLD, 10.0, Block("one", "measure", (OLD,))))
    assert derive(store, table=table, say=lambda _: None) is not None
    text = "".join(path.read_text() for path in (store.root / "asv" / "results").rglob("*.json"))
    assert "track_cost_replay_gpu_us" in text
    assert "Infinity" not in text


def test_units_and_names(written: Path) -> None:
    """One benchmark a metric and subject, in the metric's unit, without a dash in its name, and told apart from what a sweep measured."""
    entries = json.loads((written / "benchmarks.json").read_text())
    replay = entries["chain.1000.track_cost_replay_gpu_us"]
    assert (replay["unit"], replay["type"], replay["version"]) == ("us", "track", "v1")
    assert "replaydrift measure --subjects chain/1000" in replay["code"]
    assert entries["chain.1000.track_cost_nodes"]["unit"] == ""
    policy = cost_benchmark_name("bucketing/decoder/long-tailed/even-4", "trace_gpu_ms")
    assert policy == "bucketing.decoder.long_tailed.even_4.track_cost_trace_gpu_ms"
    assert "rng.bug.track_capture_ms" in entries


def test_the_version_is_that_of_the_newest_block() -> None:
    """Numbers of an older version of a subject stay out of its graphs; processes that ran different versions are no point at all."""
    later = Block("20261201-0900-measure", "measure", (OLD,) * 2)
    points = [CostPoint.of(one) for one in (costs(OLD, 1.0, later, "v2"), costs(OLD, 1.0, version="v1"))]
    assert cost_versions(points) == {"chain/1000": "v2"}
    assert {entry["version"] for entry in cost_benchmarks(points)} == {"v2"}
    mixed = tuple(visit for version in ("v1", "v2") for visit in costs(OLD, 1.0, later, version).visits[:1])
    assert CostPoint.of(Costs(later, environment(OLD), mixed)).values == {}


def test_a_machine_with_costs_alone(store: Store, table: Table) -> None:
    """Costs need no verdicts beside them; their releases are steps of the chain like any other."""
    CostStore(store.root).write(costs("2.12.0+cu130", 10.0, Block("one", "measure", ("2.12.0+cu130",))))
    (machine,) = read_machines(store, table)
    assert (machine.name, machine.gpu, machine.names) == ("h200", "NVIDIA H200", ["2.12.0+cu130"])
    assert derive(store, table=table, say=lambda _: None) is not None


def test_lines_of_wheels_hold_for_costs_too(measured: Store, table: Table) -> None:
    """A build of its own is a line of its own, default wheels are one whatever their CUDA."""
    block = Block("b", "measure", ("2.14.1+cu126",))
    CostStore(measured.root).write(costs("2.14.1+cu126", 10.0, block))
    machine: Machine = next(one for one in read_machines(measured, table) if one.name == "h200")
    assert {(wheel, Release.parse(point.release).version) for wheel, point in machine.costs} == {
        ("default", "2.13.0"), ("default", "2.15.0"), ("cu126", "2.14.1"),
    }  # fmt: skip


def test_publish_draws_costs(measured: Store, table: Table, tmp_path: Path) -> None:
    """The real asv draws a graph a block, and lists the step of the replay and of the count within the block, named by its release."""
    page = publish(measured, tmp_path / "asv", table=table, copies=False, say=lambda _: None)
    assert page is not None
    index = json.loads((page.parent / "index.json").read_text())
    assert set(index["params"]["block"]) == {None, "20261103-0900-upgrade", "20261201-0900-measure"}
    graphs = sorted((page.parent / "graphs").rglob("chain.1000.track_cost_replay_gpu_us.json"))
    lengths = {path: len(json.loads(path.read_text())) for path in graphs if "summary" not in path.parts}
    assert sorted(lengths.values()) == [1, 2]
    assert len(list((page.parent / "graphs").rglob("block-null/**/rng.bug.track_verdict.json"))) >= 1
    listed = {entry[0]: entry[6] for entry in json.loads((page.parent / "regressions.json").read_text())["regressions"]}
    new = index["tags"]["v2.15.0"]
    assert [step[1] for step in listed["chain.1000.track_cost_nodes"]] == [new]
    assert [step[1] for step in listed["chain.1000.track_cost_replay_gpu_us"]] == [new]


def test_thresholds_cover_each_metric_once() -> None:
    """Every metric has one threshold: any step of a count, less of a time of the GPU than of one of the host."""
    for metric in METRICS.values():
        hits = [share for pattern, share in thresholds().items() if re.match(pattern, cost_benchmark_name("chain/10", metric.name) + "@main")]
        assert hits == ([] if is_pace(metric.name) else [threshold(metric)])
    assert threshold(METRICS["nodes"]) < threshold(METRICS["replay_gpu_us"]) < threshold(METRICS["capture_ms"])


@pytest.mark.parametrize(("metric", "noise"), [("replay_gpu_us", 0.01), ("trace_gpu_ms", 0.01), ("capture_ms", 0.1), ("eager_gpu_us", 0.1)])
def test_noise_is_not_listed(metric: str, noise: float) -> None:
    """With the noise that was seen of medians, asv's own detector lists at most 1 in 100 series without a change, of 2 to 8 releases."""
    steps = pytest.importorskip("asv.step_detect")
    chance = random.Random(7)
    for releases in (2, 3, 4, 8):
        listed = 0
        for _ in range(100):
            series = [100 * (1 + chance.gauss(0, noise)) for _ in range(releases)]
            found = steps.detect_regressions(steps.detect_steps(series), threshold=threshold(METRICS[metric]))
            listed += found[0] is not None
        assert listed <= 1, (releases, listed)
