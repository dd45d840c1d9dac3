"""A block of visits: in turns, every one kept, taken up again where it stopped. The measuring side is a stand-in."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from making import record
from rich.console import Console
from synthetic_costs import block, subject, visit
from toybox import HERE, SOURCE, environ

from replaydrift.cli import cli
from replaydrift.commands.measure import VisitProgress
from replaydrift.costs import suite, visits
from replaydrift.costs.advice import Prices
from replaydrift.costs.blocks import order_of
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.launching import VisitFailedError, listen
from replaydrift.costs.records import Costs
from replaydrift.costs.steps import StepCost
from replaydrift.errors import RunError
from replaydrift.library import read_library
from replaydrift.progress import LiveProgress
from replaydrift.store import Store

A, B = "2.13.0+cu130", "2.15.0+cu132"
FAKE = Path(__file__).parent / "fake_measuring.py"
pytestmark = pytest.mark.usefixtures("fake_torch")


@pytest.fixture(autouse=True)
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in writes which release was visited."""
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


@pytest.fixture
def pythons(tmp_path: Path) -> dict[str, str]:
    """An interpreter for each release: this one with the fake torch, and the stand-in where it is asked to measure."""
    made = {}
    for name in (A, B):
        path = tmp_path / f"python-{name}"
        measures = f'case "$2" in *replaydrift.measuring*) exec {sys.executable} {FAKE};; esac'
        path.write_text(f'#!/bin/sh\nexport FAKE_TORCH_RELEASE={name}\n{measures}\nexec {sys.executable} "$@"\n')
        path.chmod(0o755)
        made[name] = str(path)
    return made


def arguments(tmp_path: Path, pythons: dict[str, str], *more: str) -> list[str]:
    """The command line that measures the small workloads and the plain toys, two visits a release."""
    sides = [f"--python={release.partition('+')[0]}={path}" for release, path in pythons.items()]
    suite = ["--subjects", "chain/10", "--subjects", "plain/*", "--visits", "2"]
    return ["measure", *sides, *suite, "--results", str(tmp_path / "results"), "--cases-dir", str(HERE / "toys"), *more]


def measure(tmp_path: Path, pythons: dict[str, str], *more: str) -> Result:
    """What the command comes to."""
    result = CliRunner().invoke(cli, arguments(tmp_path, pythons, *more))
    if result.exception is not None and not isinstance(result.exception, SystemExit | RunError | OSError):
        raise result.exception
    return result


def blocks(tmp_path: Path) -> list[tuple[Costs, ...]]:
    """All blocks of the store."""
    store = CostStore(tmp_path / "results")
    return [store.read_block("fake-h200", name) for name in store.blocks("fake-h200")] if store.machines() else []


def visited(trace: Path) -> list[str]:
    """The releases in the order in which they were visited: A or B."""
    return [{A: "A", B: "B"}[line] for line in trace.read_text().split()] if trace.exists() else []


def test_releases_take_turns() -> None:
    """A B C, then C B A: what drifts on the machine meets all releases alike."""
    assert "".join(order_of("ABC", 3)) == "ABCCBAABC"
    assert "".join(order_of("AB", 4)) == "ABBAABBA"
    assert "".join(order_of("A", 3)) == "AAA"


def test_a_block_is_measured_and_stored(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """Every visit is one process, its samples are kept to six digits, and what could not be measured says why."""
    result = measure(tmp_path, pythons, "--purpose", "upgrade", "--note", "told", "--json")
    (old, new), tree = blocks(tmp_path)[0], json.loads(result.stdout)

    assert visited(trace) == list("ABBA")
    assert [[visit.number for visit in costs.kept] for costs in (old, new)] == [[1, 4], [2, 3]]
    assert old.block == new.block
    assert (old.block.purpose, old.block.order, old.environment.note) == ("upgrade", (A, B, B, A), "told")
    assert old.kept[0].subjects["chain/10"].metrics == {"replay_gpu_us": (10.1235, 11.0, 30.0), "nodes": (3,)}
    assert old.kept[0].subjects["chain/10"].lacks == {"record_ms": "too old"}
    assert old.kept[0].subjects["plain/bug"].failed == "RuntimeError: [no] capture"
    assert (old.kept[0].sm_clock_mhz, old.kept[0].temperature_c) == (1980, 45)
    assert tree["releases"][A]["visits"] == 2
    assert tree["releases"][A]["failed"] == {"plain/bug": "RuntimeError: [no] capture"}
    assert tree["block"].endswith("-upgrade")


def test_every_release_measures_the_same_share_in_its_turn(tmp_path: Path, pythons: dict[str, str]) -> None:
    """The first visits of both releases have the same cases, the second the others; with --every-case all have all."""
    folder = tmp_path / "cases"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text('def eager():\n    yield "replay", 1\n\n\ndef fix():\n    yield "replay", 1\n')
    sides = [f"--python={path}" for path in pythons.values()]
    words = ["measure", *sides, "--visits", "2", "--results", str(tmp_path / "results"), "--cases-dir", str(folder)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert CliRunner().invoke(cli, [*words, "--every-case"]).exit_code == 0
    dealt, every = blocks(tmp_path)
    cases = [[{"one/fix", "two/fix"} & visit.subjects.keys() for visit in costs.kept] for costs in dealt]
    assert cases == [[{"one/fix"}, {"two/fix"}]] * 2
    assert all("chain/1000" in visit.subjects for costs in dealt for visit in costs.kept)
    assert all({"one/fix", "two/fix"} <= visit.subjects.keys() for costs in every for visit in costs.kept)


def test_what_a_sweep_saw_raise_takes_no_process(tmp_path: Path, pythons: dict[str, str]) -> None:
    """A release on which the case raised keeps the sweep's words; the other measures it."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "one.py").write_text('def eager():\n    yield "replay", 1\n\n\ndef fix():\n    yield "replay", 1\n')
    seen = record("raised:E: as the sweep saw it", case="one/fix", kind="fix", version=read_library(folder).cases[0].version)
    sides = [f"--python={path}" for path in pythons.values()]
    words = ["measure", *sides, "--visits", "1", "--results", str(tmp_path / "results"), "--cases-dir", str(folder)]
    assert CliRunner().invoke(cli, [*words, "--block", "before"]).exit_code == 0
    (here,) = (costs.environment for costs in CostStore(tmp_path / "results").read_block("fake-h200", "before") if costs.environment.release == A)
    Store(tmp_path / "results").write(here, [seen])
    assert CliRunner().invoke(cli, words).exit_code == 0
    ((old, new),) = (block for block in blocks(tmp_path) if block[0].block.name != "before")
    assert old.kept[0].subjects["one/fix"].failed == "E: as the sweep saw it"
    assert new.kept[0].subjects["one/fix"].metrics["nodes"] == (3,)


def test_a_person_sees_the_medians(tmp_path: Path, pythons: dict[str, str]) -> None:
    """One line a subject, with the median of the process medians."""
    text = measure(tmp_path, pythons).output
    assert [line.split() for line in text.splitlines() if line.startswith("chain/10")] == [["chain/10", "11", "3"]] * 2
    assert "such as plain/bug: RuntimeError: [no] capture" in text
    assert "[4/4] torch 2.13.0+cu130" in text


def test_a_bar_that_is_up_is_spoken_through() -> None:
    """An upgrade has one: visits are lines above it, what is measured now stands in it, and no text is markup."""
    stream = io.StringIO()
    with LiveProgress(Console(file=stream, force_terminal=True, width=150, color_system=None)) as bar, VisitProgress(bar) as progress:
        progress.doing("importing torch with [env]/bin/python")
        progress.begun(block(A, B, name="mine"), 1)
        progress.measured("chain/10")
        progress.visited(B, visit(2, chain_10=subject(nodes=3)))
        progress.visited(A, visit(1, "throttled: [bold]x"))
    text = stream.getvalue()
    assert "block mine: 2 visits to torch 2.13.0+cu130, 2.15.0+cu132, 1 of them made before" in text
    assert "visit 2 of 2: 1 subjects, chain/10" in text
    assert "[2/2] torch 2.15.0+cu132: 1 subjects, 31.5 s" in text
    assert "visit 1, torch 2.13.0+cu130: discarded, throttled: [bold]x" in text


def test_of_the_model_only_counts_are_stored(tmp_path: Path, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a measuring side that gives times of the model does not get them into the store, and one visit is enough."""
    heard = listen(
        pythons[A], {"engine": "model", "workloads": ["chain/10"], "cases": []}, told=lambda _: None, stopped=lambda: False,
    )  # fmt: skip
    assert set(heard.subjects["chain/10"].metrics) == {"nodes"}


def test_throttled_visits_are_made_again(tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A discarded visit is kept with its reason, and its place is filled by the next."""
    monkeypatch.setenv("FAKE_MEASURING", "2:throttled")
    result = measure(tmp_path, pythons)
    new = blocks(tmp_path)[0][1]

    assert visited(trace) == list("ABBBA")
    assert [(visit.number, visit.discarded) for visit in new.visits] == [
        (2, "the GPU was throttled: SW thermal slowdown"), (2, ""), (3, ""),
    ]  # fmt: skip
    assert "discarded, the GPU was throttled" in result.stderr


def test_a_power_cap_alone_discards_nothing(tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are machines that always have one: it is noted, and the clock decides."""
    monkeypatch.setenv("FAKE_MEASURING", "all:capped")
    measure(tmp_path, pythons)
    assert visited(trace) == list("ABBA")
    assert blocks(tmp_path)[0][0].kept[0].throttled == ("power cap",)


def test_a_visit_on_a_slow_clock_is_made_again(tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock is held against that of the others, once there are some."""
    monkeypatch.setenv("FAKE_MEASURING", "1:slow")
    measure(tmp_path, pythons)
    old = blocks(tmp_path)[0][0]

    assert visited(trace) == list("ABBAA")
    assert [(visit.number, visit.discarded) for visit in old.visits] == [
        (1, "its SM clock was 1200 MHz, that of the others 1980 MHz"), (1, ""), (4, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        ("die", "the process ended with exit code 1 before its last line (no device)"),
        ("crash", "the process was killed by SIGSEGV (a library says hello)"),
        ("mumble", "the process said 'not json', which tells of no subject (JSONDecodeError)"),
        ("fail", "nothing was measured: RuntimeError: [no] capture"),
        ("other", "the process imported torch 2.0.0"),
        ("nan", "nothing was measured: what was measured cannot be stored"),
        ("unknown", "the table of metrics has no 'speed'"),
    ],
)
def test_a_release_that_cannot_be_measured_does_not_stop_the_others(
    tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch, deed: str, why: str,
) -> None:  # fmt: skip
    """After three tries it is left alone; the costs of the other are stored, and the command fails and says why."""
    monkeypatch.setenv("FAKE_MEASURING", f"{B}:{deed}")
    result = measure(tmp_path, pythons)
    old, new = blocks(tmp_path)[0]

    assert isinstance(result.exception, RunError)
    assert f"torch {B}: " in str(result.exception)
    assert why in str(result.exception)
    assert visited(trace) == list("ABBBA")
    assert (len(old.kept), len(new.kept), len(new.visits)) == (2, 0, 3)
    assert CostStore(tmp_path / "results").unfinished("fake-h200", old.block.name) == ()


def test_silence_ends_a_visit(pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says nothing for long is ended, with all that it started."""
    monkeypatch.setenv("FAKE_MEASURING", "all:hang")
    begun = time.monotonic()
    with pytest.raises(VisitFailedError, match=r"said nothing for 0\.5 s after it was started"):
        listen(
            pythons[A], {"engine": "cuda", "workloads": ["chain/10"], "cases": []}, told=lambda _: None, stopped=lambda: False, silence_s=0.5,
        )  # fmt: skip
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_block_goes_on(tmp_path: Path, pythons: dict[str, str], trace: Path, number: signal.Signals) -> None:
    """Killed or interrupted in a visit, a block keeps those that ended and makes only the others with --resume."""
    told = environ(TRACE=str(trace), FAKE_MEASURING="3:hang", PYTHONUNBUFFERED="1")
    told["PYTHONPATH"] = f"{SOURCE}:{told['PYTHONPATH']}"
    with subprocess.Popen(
        [sys.executable, "-m", "replaydrift", *arguments(tmp_path, pythons)],
        env=told, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        give_up = time.monotonic() + 30
        while len(visited(trace)) < 3 and time.monotonic() < give_up:
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 2
        assert f"error: stopped by {number.name} after 2 of 4 visits; they are kept" in err
        assert "Traceback" not in err

    refused = measure(tmp_path, pythons)
    assert "holds visits already: go on with --resume" in str(refused.exception)
    before = blocks(tmp_path)[0]
    assert measure(tmp_path, pythons, "--resume").exit_code == 0
    (after,) = blocks(tmp_path)

    assert visited(trace) == list("ABBBA")
    assert [costs.kept[:1] for costs in after] == [costs.kept for costs in before]
    assert all(len(costs.kept) == 2 for costs in after)


def stop_after_two(tmp_path: Path, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    """The name of a block that could not store its third visit: the disk was full."""
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = CliRunner().invoke(cli, arguments(tmp_path, pythons, *more))
    assert "No space left on device" in str(result.exception)
    assert "--resume" in str(result.exception)
    (block,) = blocks(tmp_path)
    return block[0].block.name


def test_a_full_disk_loses_one_visit(tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored before stays and the block goes on with --resume."""
    stop_after_two(tmp_path, pythons, monkeypatch)
    measure(tmp_path, pythons, "--resume")
    (block,) = blocks(tmp_path)
    assert [len(costs.kept) for costs in block] == [2, 2]
    assert visited(trace) == list("ABBBA")


def test_a_stopped_block_does_not_go_on_with_something_else(
    tmp_path: Path, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Other subjects, another environment: refused; --fresh discards it, --block begins another."""
    name = stop_after_two(tmp_path, pythons, monkeypatch)
    other = measure(tmp_path, pythons, "--resume", "--subjects", "chain/100")
    assert f"block {name!r} differs in what is measured" in str(other.exception)
    more = measure(tmp_path, pythons, "--resume", "--block", name, "--visits", "3")
    assert "differs in releases or number of visits" in str(more.exception)
    with monkeypatch.context() as patch:
        patch.setenv("FAKE_TORCH_CUDA", "12.6")
        assert "differs in torch" in str(measure(tmp_path, pythons, "--resume").exception)
    assert measure(tmp_path, pythons, "--resume", "--subjects", "chain/100", "--block", "mine").exit_code == 0
    assert measure(tmp_path, pythons, "--fresh").exit_code == 0
    store = CostStore(tmp_path / "results")
    assert [store.unfinished("fake-h200", block) for block in store.blocks("fake-h200")] == [(), ()]


def test_a_finished_block_stays(tmp_path: Path, pythons: dict[str, str]) -> None:
    """Not even --fresh takes it away; without a name the next block is a new one."""
    measure(tmp_path, pythons, "--block", "mine")
    assert "is finished and stays" in str(measure(tmp_path, pythons, "--block", "mine", "--fresh").exception)
    measure(tmp_path, pythons, "--resume")
    measure(tmp_path, pythons, "--resume")
    assert len(blocks(tmp_path)) == 3


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--resume", "--fresh"], "give one of them"),
        (["--plant", "chain/10"], "expected SUBJECT:gpu=FACTOR"),
        (["--plant", "chain/10:gpu=0.5"], "expected SUBJECT:gpu=FACTOR"),
        (["--plant", "chain/1000:gpu=1.05"], "cannot slow down 'chain/1000'"),
        (["--plant", "chain/10:gpu=1.05", "--purpose", "aa"], "no block for purpose 'aa'"),
        (["--plant", "chain/10:gpu=1.05", "--block", "mine"], "ends in 'planted'"),
        (["--block", "mine-planted"], "ends in 'planted'"),
        (["--subjects", "chian/10"], "no subject matches 'chian/10': did you mean 'chain/10'"),
        (["--block", "../x"], "cannot name a block"),
        (["--machine", "a/b"], "cannot name a machine"),
        (["--visits", "0"], "0 is not in the range"),
        (["--python", "none/python"], "no interpreter 'none/python'"),
        (["--python", "2.13=x"], "2.13"),
        (["--python", "2.14.1=PYTHON"], "release '2.14.1' was asked for"),
        (["--python", "PYTHON"], "both import torch 2.13.0+cu130"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(
    tmp_path: Path, pythons: dict[str, str], trace: Path, words: list[str], answer: str,
) -> None:  # fmt: skip
    """One line says what was found and what was expected; no visit is made and nothing is written."""
    result = CliRunner().invoke(cli, arguments(tmp_path, pythons, *(word.replace("PYTHON", pythons[A]) for word in words)))
    assert result.exit_code != 0
    assert answer in f"{result.exception} {result.output}"
    assert not isinstance(result.exception, TypeError | AttributeError | KeyError)
    assert visited(trace) == []
    assert not (tmp_path / "results").exists()


def test_planted_slow_downs_are_kept_apart(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """They go into a block whose name says so, and which nobody takes for costs of a release."""
    assert measure(tmp_path, pythons, "--plant", "chain/10:gpu=1.05", "--plant", "chain/10:host=1.2").exit_code == 0
    store = CostStore(tmp_path / "results")
    (name,) = store.blocks("fake-h200", planted=True)
    assert name.endswith("-measure-planted")
    assert (store.blocks("fake-h200"), list(store.everything()), store.newest("fake-h200", A)) == ((), [], None)
    assert store.read("fake-h200", name, A).values("chain/10", "nodes") == (3, 3)
    assert measure(tmp_path, pythons, "--plant", "chain/10:gpu=1.05", "--block", "planted").exit_code == 0
    assert store.blocks("fake-h200", planted=True) == (name, "planted")


def test_optimal_buckets_follow_the_newest_costs_of_the_machine(
    tmp_path: Path, pythons: dict[str, str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A new store saves padding; a machine whose finished block tells what a step costs saves time."""
    seen: list[StepCost | None] = []
    real = suite.buckets_of

    def spy(policy: str, lengths: object, cost: StepCost | None = None) -> tuple[int, ...]:
        seen.append(cost)
        return real(policy, lengths, cost)

    curve = StepCost.linear(50, 0.1)
    monkeypatch.setattr(suite, "buckets_of", spy)
    monkeypatch.setattr(visits, "prices_of", lambda _costs, model: Prices("made up", curve) if model == "mlp" else None)
    measure(tmp_path, pythons)
    assert set(seen) == {None}
    seen.clear()
    measure(tmp_path, pythons)
    assert set(seen) == {None, curve}


def test_releases_on_two_gpus_are_no_block(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """Costs of different GPUs are not comparable."""
    script = Path(pythons[B])
    script.write_text(script.read_text().replace("export ", "export FAKE_TORCH_GPU='NVIDIA A100' "))
    result = measure(tmp_path, pythons)
    assert "the releases do not run on one machine" in str(result.exception)
    assert visited(trace) == []
