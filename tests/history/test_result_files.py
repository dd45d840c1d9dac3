"""asv's result files: their content, and a contract test that asv's own classes read them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from making import environment, record
from synthetic import sweep

from replaydrift.errors import StoreError
from replaydrift.history.chain import chain_of
from replaydrift.history.release_repository import build_repository
from replaydrift.history.result_files import benchmark_name, read_machines, versions, write_result_files
from replaydrift.releases import Table
from replaydrift.store import Store


@pytest.fixture
def written(filled: Store, table: Table, tmp_path: Path) -> Path:
    """The folder of result files of the synthetic store."""
    machines = read_machines(filled, table)
    chain = chain_of((recorded.release for machine in machines for recorded in machine.releases), table)
    commits = build_repository(tmp_path / "repository", chain)
    assert write_result_files(tmp_path / "results-of-asv", machines, chain, commits) == 7
    (tmp_path / "commits.json").write_text(json.dumps(commits))
    return tmp_path / "results-of-asv"


def results(folder: Path, machine: str, version: str, environment: str = "torch") -> dict[str, Any]:
    """The tree of one result file."""
    commit = json.loads((folder.parent / "commits.json").read_text())[version]
    tree = json.loads((folder / machine / f"{commit[:8]}-{environment}.json").read_text())
    assert tree["commit_hash"] == commit
    return tree


def value(tree: dict[str, Any], case: str, kind: str) -> float | None:
    """The number drawn of a case."""
    number: float | None = tree["results"][f"rng.{case}.{kind}"][0][0]
    return number


def test_default_wheels_form_one_line_whatever_their_cuda(written: Path) -> None:
    """Parameters and the environment's name are the same for all default wheels; a build of its own has a line of its own."""
    line = [results(written, "h200", version) for version in ("2.11.0", "2.13.0", "2.14.1", "2.15.0")]
    facts = {"machine": "h200", "engine": "cuda", "gpu": "NVIDIA H200"}
    assert all(tree["params"] == facts | {"wheel": "default"} and tree["env_name"] == "torch" for tree in line)
    other = results(written, "h200", "2.14.1", "torch-cu126")
    assert other["params"] == facts | {"wheel": "cu126"}
    assert other["commit_hash"] == line[2]["commit_hash"]


def test_a_cpu_wheel_stands_in_the_line_of_default_wheels(written: Path) -> None:
    """On the CPU model a CPU wheel takes the place of the default wheel, so both are points of one line."""
    assert results(written, "model", "2.13.0")["params"] == results(written, "model", "2.15.0")["params"]


def test_a_cpu_wheel_beside_the_default_wheel_of_its_version(store: Store, table: Table) -> None:
    """Two wheels of one version never share a line, or asv would average their numbers."""
    for release in ("2.13.0+cpu", "2.13.0+cu130", "2.14.1+cpu"):
        sweep(store, release, machine="model", bug="wrong")
    (machine,) = read_machines(store, table)
    assert [(recorded.release, recorded.wheel) for recorded in machine.releases] == [
        ("2.13.0+cu130", "default"), ("2.13.0+cpu", "cpu"), ("2.14.1+cpu", "default"),
    ]  # fmt: skip


def test_numbers_of_a_change(written: Path) -> None:
    """What turned silently wrong is 0 before and 1 from then on, with the codes of its verdicts beside it."""
    line = [results(written, "h200", version) for version in ("2.11.0", "2.13.0", "2.14.1", "2.15.0")]
    assert [value(tree, "fix_registered", "track_differs_from_baseline") for tree in line] == [0, 0, 1, 1]
    assert [value(tree, "fix_registered", "track_verdict") for tree in line] == [1, 1, 8, 8]
    assert value(results(written, "h200", "2.14.1", "torch-cu126"), "fix_registered", "track_differs_from_baseline") == 0


def test_what_says_nothing_about_torch(written: Path) -> None:
    """A broken attempt is null, a skipped or flaky case NaN; neither is a baseline for what follows."""
    first, third, last = (results(written, "h200", version) for version in ("2.11.0", "2.14.1", "2.15.0"))
    kind = "track_differs_from_baseline"
    assert value(first, "fix_broken", kind) is None
    assert value(third, "fix_broken", kind) == 0
    assert math.isnan(value(first, "fix_skipped", kind) or 0)
    assert math.isnan(value(last, "bug", kind) or 0)
    assert value(last, "bug", "track_verdict") == 9


def test_capture_times_are_the_gpu_s(written: Path) -> None:
    """A machine with a GPU has capture times, the CPU model has none."""
    assert value(results(written, "h200", "2.13.0"), "bug", "track_capture_ms") == 130.0
    assert not [name for name in results(written, "model", "2.13.0")["results"] if name.endswith("capture_ms")]


def test_nothing_infinite_and_no_text_is_a_result(written: Path) -> None:
    """Every result is null, NaN or finite: one `inf` hangs asv, one text crashes it."""
    for path in written.glob("*/*-*.json"):
        for (number,), params, version in json.loads(path.read_text())["results"].values():
            assert number is None or (isinstance(number, int | float) and not math.isinf(number))
            assert (params, version) == ([], "v1")


def test_the_version_is_that_of_the_latest_record(store: Store, table: Table) -> None:
    """A case that was edited is drawn from the edit on: its benchmark has the version of its most recent record."""
    sweep(store, "2.14.1+cu130", bug="wrong")
    store.write(environment("2.13.0+cu130"), [record("wrong", case="rng/bug", version="older")])
    assert versions(read_machines(store, table)) == {"rng/bug": "v1"}


def test_a_baseline_belongs_to_its_version(store: Store, table: Table, tmp_path: Path) -> None:
    """A verdict of another version of the case is no baseline."""
    store.write(environment("2.13.0+cu130"), [record("wrong", case="rng/bug", version="older")])
    sweep(store, "2.14.1+cu130", bug="correct")
    machines = read_machines(store, table)
    write_result_files(tmp_path / "out", machines, chain_of((), table), {version: f"{version:0<40}" for version in ("2.13.0", "2.14.1")})
    tree = json.loads((tmp_path / "out" / "h200" / "2.14.100-torch.json").read_text())
    assert value(tree, "bug", "track_differs_from_baseline") == 0


def test_two_gpus_under_one_name(store: Store, table: Table) -> None:
    """Results of two GPUs that were copied under one machine's name are refused, and the error names both."""
    sweep(store, "2.13.0+cu130", bug="wrong")
    other = Store(store.root.with_name("other"))
    other.write(environment("2.14.1+cu130", gpu="NVIDIA A100"), [record("wrong", case="rng/bug")])
    other.folder("h200", "2.14.1+cu130").rename(store.folder("h200", "2.14.1+cu130"))
    with pytest.raises(StoreError, match="'NVIDIA H200' and of 'cuda' on 'NVIDIA A100'"):
        read_machines(store, table)


def test_a_name_has_no_dash() -> None:
    """A name has no dash, since asv takes what follows a dash for the number of a parameter."""
    assert benchmark_name("shared-pool/fix-capture-order", "track_verdict") == "shared_pool.fix_capture_order.track_verdict"


def test_contract_asv_loads_every_file(written: Path) -> None:
    """The classes of asv itself read each kind of file as what it was written for."""
    results_of, benchmarks_of = pytest.importorskip("asv.results"), pytest.importorskip("asv.benchmarks")
    machines, config = pytest.importorskip("asv.machine"), pytest.importorskip("asv.config")
    conf = config.Config.from_json({"repo": "repository", "results_dir": str(written)})
    benchmarks = benchmarks_of.Benchmarks.load(conf)
    assert len(benchmarks) == 4 * 3 - 1  # No attempt of the skipped case came to an end, so none has a capture time.
    assert {entry["version"] for entry in benchmarks.values()} == {"v1"}
    assert sorted(Path(path).parent.name for path in machines.iter_machine_files(str(written))) == ["h200", "model"]
    loaded = list(results_of.iter_results(str(written)))
    assert len(loaded) == 7
    for found in loaded:
        assert set(found.get_result_keys(benchmarks)) == set(found.get_all_result_keys())
        assert found._filename.startswith(f"{found.params['machine']}/{found.commit_hash[:8]}-{found.env_name}")
    (found,) = (one for one in loaded if one.date == max(other.date for other in loaded) and one.params["machine"] == "h200")
    assert found.get_result_value("rng.fix_registered.track_differs_from_baseline", []) == [1]
    assert found.get_result_value("rng.bug.track_capture_ms", []) == [150.0]
