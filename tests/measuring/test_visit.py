"""Visits: the groups of a request, and the whole protocol beside a real torch on the CPU model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replaydrift.costs.metrics import METRICS
from replaydrift.measuring.gpu import Reading
from replaydrift.measuring.results import Measured
from replaydrift.measuring.visit import Visit, groups_of
from replaydrift.measuring.workloads import version_of

SOURCE = Path(__file__).parents[2] / "src"
TRACE = [5, 40, 17, 64, 3]
CASES = """
import os, signal, torch

def _captured(kernels):
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            x.add_(1)
    print("printed by a case")
    return graph, x

def behaviour(kernels=1):
    graph, x = _captured(kernels)
    graph.replay()
    yield "replay", x

def plain():
    yield "replay", 1

def raises():
    yield "replay", _captured(1)
    raise ValueError("on purpose")

def crashes():
    yield "replay", 1
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def wish(policy: str, buckets: list[int] | None, **more: Any) -> dict[str, Any]:
    """A policy over the trace of these tests, as a request says it."""
    return {"model": "decoder", "trace": TRACE, "name": "short", "policy": policy, "buckets": buckets, "shared_pool": True} | more


def test_a_group_is_a_workload_or_the_policies_of_a_trace_or_the_cases_of_a_file() -> None:
    """What shares a process: policies are measured beside each other, cases of a file one after the other."""
    cases = [{"name": f"{file}/{name}", "path": f"/cases/{file}.py"} for file in "ab" for name in ("x", "y")]
    bucketing = [wish("eager", None), wish("k", [64]), wish("eager", None, model="mlp"), wish("eager", None, trace=[7])]

    groups = list(groups_of({"workloads": ["chain/1", "mlp/256"], "bucketing": bucketing, "cases": cases}))

    assert [(group.kind, list(group.members)) for group in groups] == [
        ("workload", ["chain/1"]),
        ("workload", ["mlp/256"]),
        ("bucketing", ["bucketing/decoder/short/eager", "bucketing/decoder/short/k"]),
        ("bucketing", ["bucketing/mlp/short/eager"]),
        ("bucketing", ["bucketing/decoder/short/eager"]),
        ("case", ["a/x", "a/y"]),
        ("case", ["b/x", "b/y"]),
    ]


def test_a_request_may_lack_what_is_not_wanted() -> None:
    """An empty request has no groups."""
    assert list(groups_of({"engine": "model"})) == []


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a visit on the CPU model says of each subject, and `end`."""
    pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("cases") / "toy.py"
    path.write_text(CASES)
    how = {"path": str(path), "version": "abc", "options": {"kernels": 7, "other": 1}, "scale": 1.0}
    cases = [
        {"name": f"toy/{name}", "function": name, **how}
        for name in ("behaviour", "crashes", "plain", "raises", "missing")
    ]
    done = visit({
        "engine": "model",
        "workloads": ["chain/10", "decoder/128", "chain/none"],
        "bucketing": [wish("eager", None), wish("powers", [8, 16, 32, 64]), wish("top", [16])],
        "cases": cases,
        "plant": {},
        "seconds": 1,
    })  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "printed by a case" in done.stderr
    assert list(lines[-1]) == ["end"]
    return {line["subject"]: line for line in lines[:-1]} | {"end": lines[-1]["end"]}


def visit(request: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """A visit of the interpreter that runs these tests."""
    return subprocess.run(
        [sys.executable, "-m", "replaydrift.measuring"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
    )


def test_every_subject_is_told_of_once(said: dict[str, dict[str, Any]]) -> None:
    """Failed or measured, each has its line; the crash of one takes no other with it."""
    assert set(said) == {
        *("chain/10", "decoder/128", "chain/none", "end"),
        *(f"bucketing/decoder/short/{policy}" for policy in ("eager", "powers", "top")),
        *(f"toy/{name}" for name in ("behaviour", "crashes", "plain", "raises", "missing")),
    }


def test_on_the_model_only_exact_counts_of_the_table_come_out(said: dict[str, dict[str, Any]]) -> None:
    """No time of the virtual clock, and no metric without a row, is ever told."""
    for line in said.values():
        for metric, values in line.get("metrics", {}).items():
            assert METRICS[metric].exact, metric
            assert len(values) == 1
            assert isinstance(values[0], int)


def test_counts_are_those_of_the_work(said: dict[str, dict[str, Any]]) -> None:
    """Ten kernels are ten nodes, and a case has the sizes that the request gives it."""
    assert said["chain/10"]["metrics"]["nodes"] == [10]
    assert said["chain/10"]["metrics"]["graphs"] == [1]
    assert said["decoder/128"]["metrics"]["nodes"][0] > 15
    assert said["toy/behaviour"]["metrics"]["nodes"] == [7]
    assert said["toy/behaviour"]["version"] == "abc"
    assert said["toy/plain"]["metrics"] == {"graphs": [0]}


def test_failures_say_how(said: dict[str, dict[str, Any]]) -> None:
    """An exception with its class and text, a crash with its signal, an unknown name with what was expected."""
    assert said["toy/raises"]["failed"] == "ValueError: on purpose"
    assert said["toy/crashes"]["failed"] == "crashed: SIGSEGV"
    assert said["toy/missing"]["failed"].startswith("AttributeError: ")
    assert said["chain/none"]["failed"] == "ValueError: no workload 'chain/none': expected chain/N, mlp/SIZE or decoder/SIZE"


def test_policies_count_what_they_pad_and_capture_and_get_every_result_right(said: dict[str, dict[str, Any]]) -> None:
    """Padded elements follow from the buckets; what fits no bucket runs eagerly at its own length."""
    metrics = {policy: said[f"bucketing/decoder/short/{policy}"]["metrics"] for policy in ("eager", "powers", "top")}

    assert {policy: found["wrong_results"] for policy, found in metrics.items()} == {"eager": [0], "powers": [0], "top": [0]}
    assert {policy: found["real_elements"] for policy, found in metrics.items()} == {policy: [sum(TRACE)] for policy in metrics}
    assert metrics["eager"]["padded_elements"] == [sum(TRACE)]
    assert metrics["powers"]["padded_elements"] == [8 + 64 + 32 + 64 + 8]
    assert metrics["top"]["padded_elements"] == [16 + 40 + 17 + 64 + 16]
    assert {policy: found["graphs"] for policy, found in metrics.items()} == {"eager": [0], "powers": [4], "top": [1]}
    assert metrics["powers"]["own_pools_reserved_bytes"] > metrics["powers"]["reserved_bytes"] > [0]


def test_the_end_has_the_facts_of_the_environment(said: dict[str, dict[str, Any]]) -> None:
    """The release that was imported stands there, and nothing is made up about a GPU that is not."""
    torch = pytest.importorskip("torch")
    assert said["end"]["environment"]["torch"]["version"] == str(torch.__version__)
    assert said["end"]["sm_clock_mhz"] is None
    assert said["end"]["throttled"] == []


def test_without_a_gpu_a_visit_to_one_fails_and_says_why() -> None:
    """No end line, exit code 2, and the reason on standard error."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = visit({"engine": "cuda", "workloads": ["chain/1"], "seconds": 1})

    assert done.returncode == 2
    assert done.stdout == ""
    assert "there is no CUDA device" in done.stderr


def visited(monkeypatch: pytest.MonkeyPatch, measured: Any) -> list[dict[str, Any]]:
    """What a visit of three cases of a file says, where they are measured by this function of their names."""
    monkeypatch.setattr("replaydrift.measuring.visit._measured", measured)
    said: list[dict[str, Any]] = []
    cases = [{"name": name, "path": "/cases/toy.py"} for name in ("a", "b", "c")]
    Visit({"engine": "cuda", "cases": cases, "seconds": 1}, said.append).run()
    return said


def test_a_subject_that_was_measured_stays_so_whatever_its_process_does_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash or an error while one is tidied away takes nothing from it, and the next ones have a new process."""

    def measured(_request, _kind, members, _until_s, begin):
        for name in members:
            begin(name)
            yield Measured(name, "v"), None
            if name == "a":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("while it is tidied away")

    assert [(line["subject"], "failed" in line) for line in visited(monkeypatch, measured)] == [("a", False), ("b", False), ("c", False)]


def test_a_process_that_always_dies_at_once_ends_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its subjects has failed, and the visit goes on."""

    def measured(*_arguments):
        os.kill(os.getpid(), signal.SIGKILL)

    said = visited(monkeypatch, measured)

    assert said == [{"subject": name, "failed": "crashed: SIGKILL"} for name in ("a", "b", "c")]


def test_readings_of_the_gpu_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the processes saw of the clock comes together in the visit; a workload is measured on one core."""
    torch, everything = pytest.importorskip("torch"), os.sched_getaffinity(0)

    def measured(_request, _kind, members, _until_s, begin):
        for name in members:
            begin(name)
            assert os.sched_getaffinity(0) == {max(everything)}
            yield Measured(name, "v"), Reading(1980, 40, ("power cap",))

    monkeypatch.setattr("replaydrift.measuring.visit._measured", measured)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    visit = Visit({"engine": "cuda", "workloads": ["chain/1"], "seconds": 1}, lambda _line: None)
    visit.run()

    assert [tuple(reading.throttled) for reading in visit.readings] == [("power cap",)]
    assert visit.readings[0].sm_clock_mhz == 1980
    assert os.sched_getaffinity(0) == everything


def test_kinds_of_workloads_have_versions_of_their_own() -> None:
    """An edit of the decoder drops no history of the MLP's or of the chains'."""
    assert len({version_of(kind) for kind in ("chain", "mlp", "decoder")}) == 3
