"""Both sides in turns, what differs again, every attempt kept; and nothing lost when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from toybox import HERE, SOURCE, environ

from replaydrift.cli import cli
from replaydrift.costs.cost_store import CostStore
from replaydrift.errors import ReplaydriftError
from replaydrift.store import Store

DRIFT = HERE / "toys_releases"
pytestmark = pytest.mark.usefixtures("fake_torch")


@pytest.fixture
def pythons(tmp_path: Path) -> dict[str, str]:
    """An interpreter for each release: this one, whose fake torch says another version."""
    made = {}
    for name in ("2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"):
        path = tmp_path / f"python-{name}"
        path.write_text(f'#!/bin/sh\nFAKE_TORCH_RELEASE={name}+cu130 exec {sys.executable} "$@"\n')
        path.chmod(0o755)
        made[name] = str(path)
    return made


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the toys write what ran, in order."""
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    return tmp_path / "trace"


def arguments(tmp_path: Path, old: tuple[str, str], new: tuple[str, str], *more: str) -> list[str]:
    """The command line of an upgrade over the toys."""
    sides = [f"--python={release}={path}" for release, path in (old, new)]
    (tmp_path / "none.toml").touch()
    store = ["--results", str(tmp_path / "results"), "--cases-dir", str(DRIFT), "--explanations", str(tmp_path / "none.toml")]
    store += ["--no-costs"]
    return ["upgrade", *sides, *store, *more]


def upgrade(tmp_path: Path, pythons: dict[str, str], *more: str, old: str = "2.13.0", new: str = "2.14.1") -> tuple[int, str]:
    """Exit code and what an upgrade prints as its answer."""
    result = CliRunner().invoke(cli, arguments(tmp_path, (old, pythons[old]), (new, pythons[new]), *more))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def attempts(tmp_path: Path, release: str) -> dict[str, int]:
    """How many attempts of each case the store has."""
    return {name: len(made.attempts) for name, made in Store(tmp_path / "results").read("fake-h200", f"{release}+cu130").cases.items()}


def test_what_differs_runs_again_on_both_sides(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """Three attempts where both sides agree, six where they differ, seven where attempts disagree; the check follows."""
    code, text = upgrade(tmp_path, pythons)
    assert code == 1
    for release in ("2.13.0", "2.14.1"):
        assert attempts(tmp_path, release) == {
            "drift/bug": 3, "drift/fix-new": 6, "drift/fix-there-and-back": 6, "drift/fix-reworded": 3, "drift/fix-mixed": 7,
        }  # fmt: skip
    assert text.index("drift/fix-there-and-back") < text.index("drift/fix-new")
    assert "1 of 7" in text
    assert not (tmp_path / "results" / ".upgrade").exists()


def test_the_sides_take_turns(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """Old and new begin in turn, so that what drifts on the machine meets both alike."""
    upgrade(tmp_path, pythons, "--cases", "drift/bug", "--attempts", "4")
    assert [line.split()[-1][:6] for line in trace.read_text().splitlines()] == [
        "2.13.0", "2.14.1", "2.14.1", "2.13.0", "2.13.0", "2.14.1", "2.14.1", "2.13.0",
    ]  # fmt: skip


def test_killed_and_taken_up_again(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """A killed upgrade has touched no record; with --resume it goes on, and runs no visit twice that had ended."""
    words = arguments(tmp_path, ("2.13.0", pythons["2.13.0"]), ("2.14.1", pythons["2.14.1"]), "--attempts", "8", "--cases", "drift/bug")
    given = environ(TRACE=str(trace), PYTHONPATH=f"{SOURCE}:{environ()['PYTHONPATH']}")
    with subprocess.Popen([sys.executable, "-m", "replaydrift", *words], env=given, start_new_session=True) as process:
        give_up = time.monotonic() + 60
        while (not trace.exists() or len(trace.read_text().splitlines()) < 5) and time.monotonic() < give_up:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (tmp_path / "results" / "verdicts" / "fake-h200" / "2.13.0+cu130").exists()
    with pytest.raises(ReplaydriftError, match="go on with --resume, or discard it with --fresh"):
        upgrade(tmp_path, pythons, "--attempts", "8", "--cases", "drift/bug")
    with pytest.raises(ReplaydriftError, match="differs in attempts"):
        upgrade(tmp_path, pythons, "--attempts", "3", "--cases", "drift/bug", "--resume")
    assert upgrade(tmp_path, pythons, "--attempts", "8", "--cases", "drift/bug", "--resume")[0] == 0
    assert attempts(tmp_path, "2.13.0") == attempts(tmp_path, "2.14.1") == {"drift/bug": 8}
    assert 16 <= len(trace.read_text().splitlines()) <= 17


def test_other_attempts_than_these_stay_out(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """A second upgrade replaces the records of its cases and leaves those of others as they were."""
    upgrade(tmp_path, pythons)
    upgrade(tmp_path, pythons, "--cases", "drift/bug", "--attempts", "1")
    assert attempts(tmp_path, "2.14.1")["drift/bug"] == 1
    assert attempts(tmp_path, "2.14.1")["drift/fix-new"] == 6


def test_sides_that_are_one(tmp_path: Path, pythons: dict[str, str]) -> None:
    """One release twice, another release than was said, a side alone or no Python are clear errors that stand in nobody's way."""
    with pytest.raises(ReplaydriftError, match=r"both sides are torch 2\.13\.0"):
        upgrade(tmp_path, pythons, new="2.13.0")
    with pytest.raises(ReplaydriftError, match=r"imports torch '2\.14\.1\+cu130': nothing was run"):
        upgrade(tmp_path, pythons | {"2.13.0": pythons["2.14.1"]})
    result = CliRunner().invoke(cli, ["upgrade", f"--python=2.13.0={pythons['2.13.0']}"])
    assert (result.exit_code, "expected it twice" in result.output) == (2, True)
    with pytest.raises(ReplaydriftError, match="no interpreter '/no/such/python'"):
        upgrade(tmp_path, pythons | {"2.13.0": "/no/such/python"})
    assert upgrade(tmp_path, pythons, "--cases", "drift/bug", "--attempts", "1")[0] == 0


def test_two_gpus_are_no_upgrade(tmp_path: Path, pythons: dict[str, str]) -> None:
    """Sides that ran on different GPUs are refused before anything is stored."""
    other = Path(pythons["2.14.1"])
    other.write_text(other.read_text().replace("FAKE_TORCH_RELEASE", "FAKE_TORCH_GPU='NVIDIA Other' FAKE_TORCH_RELEASE"))
    with pytest.raises(ReplaydriftError, match="do not run on one machine"):
        upgrade(tmp_path, pythons, "--cases", "drift/bug")
    assert not (tmp_path / "results" / "verdicts").exists()


def measuring(pythons: dict[str, str]) -> dict[str, str]:
    """The interpreters, with the stand-in of the cost tests where they are asked to measure."""
    fake = HERE / "costs" / "fake_measuring.py"
    for name, path in pythons.items():
        measures = f'case "$2" in *replaydrift.measuring*) FAKE_TORCH_RELEASE={name}+cu130 exec {sys.executable} {fake};; esac'
        Path(path).write_text(Path(path).read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{measures}\n"))
    return pythons


def test_costs_are_measured_before_the_check(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """An upgrade leaves a block of its own, its releases in turns; --no-costs leaves none."""
    costs = CostStore(tmp_path / "results")
    assert upgrade(tmp_path, measuring(pythons), "--cases", "drift/bug")[0] == 0
    assert costs.machines() == ()
    words = [word for word in arguments(tmp_path, *((name, pythons[name]) for name in ("2.13.0", "2.14.1"))) if word != "--no-costs"]
    CliRunner().invoke(cli, [*words, "--cases", "drift/bug", "--visits", "2"])
    (name,) = costs.blocks("fake-h200")
    old, new = costs.read_block("fake-h200", name)
    assert (old.block.purpose, "".join("AB"[release == "2.14.1+cu130"] for release in old.block.order)) == ("upgrade", "ABBA")
    assert [len(old.kept), len(new.kept)] == [2, 2]
    assert attempts(tmp_path, "2.13.0") == {"drift/bug": 3}


def test_an_upgrade_stopped_while_it_measures_goes_on_there(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """No attempt and no visit that had ended is made again."""
    words = [word for word in arguments(tmp_path, *((name, measuring(pythons)[name]) for name in ("2.13.0", "2.14.1"))) if word != "--no-costs"]
    words += ["--cases", "drift/bug", "--visits", "2", "--attempts", "1"]
    given = environ(TRACE=str(trace), FAKE_MEASURING="5:hang", PYTHONPATH=f"{SOURCE}:{environ()['PYTHONPATH']}")
    with subprocess.Popen([sys.executable, "-m", "replaydrift", *words], env=given, stderr=subprocess.PIPE, text=True) as process:
        give_up = time.monotonic() + 60
        while (not trace.exists() or len(trace.read_text().splitlines()) < 5) and time.monotonic() < give_up:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "stopped by SIGINT after 2 of 4 visits" in err
    ran = trace.read_text().splitlines()
    CliRunner().invoke(cli, [*words, "--resume"])
    assert len(trace.read_text().splitlines()) == len(ran) + 2
    assert attempts(tmp_path, "2.13.0") == {"drift/bug": 1}


def test_costs_that_cannot_be_measured_leave_the_verdicts(tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch) -> None:
    """It is said, and the check is printed."""
    monkeypatch.setenv("FAKE_MEASURING", "all:die")
    words = [word for word in arguments(tmp_path, *((name, measuring(pythons)[name]) for name in ("2.13.0", "2.14.1"))) if word != "--no-costs"]
    result = CliRunner().invoke(cli, [*words, "--cases", "drift/bug"])
    assert "costs: no visit counts of 2 release(s): torch 2.13.0+cu130: the process ended with exit code 1" in result.stderr
    assert attempts(tmp_path, "2.13.0") == {"drift/bug": 3}


def bisect(tmp_path: Path, pythons: dict[str, str], case: str, *more: str) -> tuple[int, dict[str, object]]:
    """Exit code and JSON of a search from 2.11.0 to 2.15.0 over these interpreters."""
    store = ["--results", str(tmp_path / "results"), "--cases-dir", str(DRIFT), "--environments", str(tmp_path / "nox")]
    given = [f"--python={release}={path}" for release, path in pythons.items()]
    result = CliRunner().invoke(cli, ["bisect", case, "--good", "2.11.0", "--bad", "2.15.0", "--no-install", "--json", *store, *given, *more])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout)


def test_bisect_by_running(tmp_path: Path, pythons: dict[str, str], trace: Path) -> None:
    """The search runs what it needs, keeps it in the store, and a second one runs nothing."""
    code, tree = bisect(tmp_path, pythons, "drift/fix-new")
    assert code == 0
    assert [(step["before"], step["after"]) for step in tree["steps"]] == [("2.13.0+cu130", "2.14.1+cu130")]
    ran = trace.read_text().splitlines()
    assert len(ran) == 4 * 3
    assert bisect(tmp_path, pythons, "drift/fix-new") [1]["steps"] == tree["steps"]
    assert trace.read_text().splitlines() == ran


def test_bisect_where_nothing_was_found(tmp_path: Path, pythons: dict[str, str]) -> None:
    """Two ends that show the same leave nothing to search for; several cases at once are refused."""
    assert bisect(tmp_path, pythons, "drift/bug")[0] == 2
    result = CliRunner().invoke(cli, ["bisect", "drift/*", "--good", "2.11.0", "--bad", "2.15.0", "--cases-dir", str(DRIFT)])
    assert (result.exit_code, "matches 5 cases, expected one" in result.output) == (2, True)


def test_a_signal_in_the_last_moment_of_a_visit_stops_the_upgrade(
    tmp_path: Path, pythons: dict[str, str], trace: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Ctrl-C while a visit's results are stored comes too late for the visit, and must not be lost on the next ones."""
    write, signals = Store.write, [signal.SIGINT]

    def interrupted(self: Store, *given: object) -> object:
        if signals:
            os.kill(os.getpid(), signals.pop())
        return write(self, *given)

    monkeypatch.setattr(Store, "write", interrupted)
    with pytest.raises(ReplaydriftError, match="stopped by SIGINT after a visit; what ended is kept: go on with .*--resume"):
        upgrade(tmp_path, pythons, "--cases", "drift/bug")
    ran = trace.read_text().splitlines()
    upgrade(tmp_path, pythons, "--cases", "drift/bug", "--resume")
    assert trace.read_text().splitlines()[: len(ran)] == ran
    assert attempts(tmp_path, "2.13.0") == {"drift/bug": 3}
