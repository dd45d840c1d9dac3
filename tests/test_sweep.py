"""A sweep runs what was asked for, keeps what ended, and says clearly why it does not start."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toybox import HERE, SOURCE, Watcher, catalogue, environ, run_toys

from replaydrift import sweep as sweeping
from replaydrift.errors import LibraryError, ReplaydriftError, RunError, StoreError
from replaydrift.journal import FILE_NAME
from replaydrift.plan import make_plan
from replaydrift.store import Store
from replaydrift.sweep import check_release, slug

SLOW = HERE / "toys_slow"

pytestmark = pytest.mark.usefixtures("fake_torch")


def command(results: Path, *more: str, folder: Path = SLOW) -> list[str]:
    """The command line of a run of slow toys."""
    return [sys.executable, "-m", "replaydrift", "run", "--cases-dir", str(folder), "--results", str(results), "--jobs", "1", *more]


def environment(trace: Path | None = None) -> dict[str, str]:
    """The environment of a driver: our source and the fake torch."""
    given = environ(TRACE=str(trace)) if trace else environ()
    return given | {"PYTHONPATH": f"{SOURCE}:{given['PYTHONPATH']}"}


def attempts_in(results: Path) -> int:
    """How many attempts are in the journal of the only sweep there."""
    files = list(results.rglob(FILE_NAME))
    return sum(path.read_bytes().count(b"\n") - 1 for path in files)


def settled(results: Path) -> dict[str, Any]:
    """All files of a store, without what differs from run to run: durations and the date."""
    found = {}
    for path in sorted(results.rglob("*")):
        if path.is_file():
            text = json.dumps(_without_times(json.loads(path.read_text())), sort_keys=True)
            found[str(path.relative_to(results))] = text
    return found


def _without_times(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_times(value) for key, value in tree.items() if key not in ("duration_ms", "recorded")}
    return [_without_times(item) for item in tree] if isinstance(tree, list) else tree


def interrupted(results: Path, trace: Path, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """A run of three attempts a case that got this signal once five attempts were kept."""
    (trace.parent / "scratch").mkdir()
    with subprocess.Popen(
        command(results),
        env=environment(trace) | {"TMPDIR": str(trace.parent / "scratch")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        give_up = time.monotonic() + 30
        while attempts_in(results) < 5 and time.monotonic() < give_up:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run that nobody stops leaves."""
    results = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(command(results), env=environment(), check=True, capture_output=True, timeout=60)
    return settled(results)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_sweep_goes_on(tmp_path: Path, number: signal.Signals, undisturbed: dict[str, Any]) -> None:
    """Killed or interrupted, a sweep goes on with --resume, runs again only what was under way, and gives the same store."""
    trace = tmp_path / "trace"
    stopped = interrupted(tmp_path / "stopped", trace, number)
    if number == signal.SIGKILL:
        assert stopped.returncode == -signal.SIGKILL
    else:
        assert stopped.returncode == 2
        assert f"error: stopped by {number.name} after" in stopped.stderr
        assert "go on with the same command and --resume" in stopped.stderr
        assert "Traceback" not in stopped.stderr
    _nothing_goes_on(trace)
    assert list((tmp_path / "scratch").iterdir()) == []
    kept = attempts_in(tmp_path / "stopped")
    assert 5 <= kept < 15
    assert not list((tmp_path / "stopped").rglob("*.json"))

    refused = subprocess.run(command(tmp_path / "stopped"), env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert f"holds {kept} attempts of a sweep that did not end" in refused.stderr

    subprocess.run(command(tmp_path / "stopped", "--resume"), env=environment(trace), check=True, capture_output=True, timeout=60)
    assert settled(tmp_path / "stopped") == undisturbed
    begun = trace.read_text().count("begins")
    assert begun <= 15 + 1
    assert not list((tmp_path / "stopped").rglob(FILE_NAME))


def _nothing_goes_on(trace: Path) -> None:
    """The server and the attempts of a driver that was stopped or killed are gone soon after."""
    time.sleep(0.5)
    before = trace.read_text()
    time.sleep(0.3)
    assert trace.read_text() == before


def test_alone_means_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """A case that runs alone has nothing beside it, while others overlap."""
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    run_toys(store, folder=SLOW, jobs=4, attempts=2)
    running: set[str] = set()
    widest = 0
    for line in (tmp_path / "trace").read_text().splitlines():
        name, word = line.split()
        if word == "begins":
            running.add(name)
            widest = max(widest, len(running))
            assert name != "fix_alone" or running == {name}
            assert name == "fix_alone" or "fix_alone" not in running
        else:
            running.discard(name)
    assert widest >= 2


def test_attempts_are_interleaved() -> None:
    """Each round runs every task once, a reference before its cases, what runs alone last."""
    toys = catalogue(SLOW)
    order = [(task.name, number) for task, number in make_plan(toys, toys.cases, engine="cuda", attempts=2).order]
    first = ["slow/bug", "slow/fix-a", "slow/fix-b", "slow/eager", "slow/fix-alone"]
    assert order == [(name, number) for number in (1, 2) for name in first]


QUEUES = """
import os

def eager():
    yield "replay", os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "the driver's")

def fix():
    yield "replay", os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "the driver's")
"""


def test_only_what_overlaps_gets_the_drivers_hardware_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """One queue makes a context sooner; a case that runs alone, or whose outcome is a matter of timing, keeps the driver's number."""
    for name in ("alone", "overlaps", "timing", "usual"):
        (tmp_path / f"{name}.py").write_text(QUEUES)
    groups = "[groups.alone.cases.fix]\nalone = true\n[groups.overlaps.cases.fix]\noverlaps = true\n"
    groups += "[groups.timing.cases.fix]\nmodel = { timing = true }\n"
    titles = "".join(f'[groups.{name}]\ntitle = "T"\n' for name in ("alone", "overlaps", "timing", "usual"))
    (tmp_path / "groups.toml").write_text("schema = 1\n" + titles + groups)
    swept = run_toys(store, folder=tmp_path)
    seen = {record.case: record.attempts[0].observed for record in swept.records}
    assert seen == {"alone/fix": "the driver's", "overlaps/fix": "the driver's", "timing/fix": "the driver's", "usual/fix": "1"}
    assert all(record.attempts[0].outcome.text == "correct" for record in swept.records)  # A reference has what its case has.
    assert swept.environment.facts["variables"]["CUDA_DEVICE_MAX_CONNECTIONS"].startswith("1, and the driver's own")

    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4")
    swept = run_toys(Store(tmp_path / "another"), folder=tmp_path)
    assert {record.attempts[0].observed for record in swept.records} == {"4"}
    assert swept.environment.facts["variables"]["CUDA_DEVICE_MAX_CONNECTIONS"] == "4"


def test_references_run_once_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    """Cases share their reference's attempt, and attempt k is judged beside attempt k."""
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    watcher = Watcher()
    run_toys(store, folder=SLOW, attempts=2, watcher=watcher)
    assert (tmp_path / "trace").read_text().count("eager begins") == 2
    assert watcher.totals == (0, 10)
    assert "slow/bug #2 wrong" in watcher.told


def test_the_release_must_be_the_one_asked_for(store: Store) -> None:
    """Another release than the one asked for stops the run before anything is run or written."""
    with pytest.raises(RunError, match=r"release '2.14.1' was asked for, but .* imports torch '2.99.0\+fake'"):
        run_toys(store, folder=SLOW, release="2.14.1")
    assert not store.root.exists()


@pytest.mark.parametrize(
    ("asked", "imported", "fits"),
    [
        ("2.14.1", "2.14.1+cu130", True),
        ("2.14.1", "2.14.1", True),
        ("2.14.1+cu130", "2.14.1+cu130", True),
        (None, "2.14.1", True),
        ("2.14.1+cu126", "2.14.1+cu130", False),
        ("2.14", "2.14.1+cu130", False),
        ("2.14.1", "2.14.10+cu130", False),
        ("2.14.1+cu130", "2.14.1", False),
    ],
)
def test_which_releases_fit(asked: str | None, imported: str, fits: bool) -> None:
    """A release takes any build of it, a build only itself."""
    if fits:
        check_release(asked, imported, "python")
    else:
        with pytest.raises(RunError):
            check_release(asked, imported, "python")


def test_default_machine(store: Store) -> None:
    """The machine is named after the GPU unless a person names it, and the note and the date are kept."""
    swept = run_toys(store, "slow/fix-a", folder=SLOW, note="warm room")
    assert store.machines() == ("fake-h200",)
    assert store.read("fake-h200", swept.environment.release).environment.note == "warm room"
    assert swept.environment.recorded.endswith("Z")


@pytest.mark.parametrize(("gpu", "name"), [("NVIDIA H200", "h200"), ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"), ("☃", "gpu")])
def test_slug(gpu: str, name: str) -> None:
    """A GPU's name becomes the name of a folder."""
    assert slug(gpu) == name


def test_a_machine_holds_one_gpu(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of another GPU do not go into a machine's folder, and nothing is run to find that out."""
    run_toys(store, "slow/fix-a", folder=SLOW, machine="mine")
    monkeypatch.setenv("FAKE_TORCH_GPU", "NVIDIA Other")
    watcher = Watcher()
    with pytest.raises(StoreError, match="name another machine with --machine"):
        run_toys(store, "slow/fix-a", folder=SLOW, machine="mine", watcher=watcher)
    assert watcher.totals is None


def test_a_changed_environment_is_refused_before_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some cases from another environment do not join those that stay; all cases anew are welcome."""
    run_toys(store, "slow/fix-a", "slow/fix-b", folder=SLOW)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    watcher = Watcher()
    with pytest.raises(RunError, match="from an environment that differs in variables"):
        run_toys(store, "slow/fix-a", folder=SLOW, watcher=watcher)
    assert watcher.totals is None
    run_toys(store, "slow/fix-a", "slow/fix-b", folder=SLOW)


@pytest.mark.parametrize("content", ['{"schema": 1, "cases": {', '{"my": "file"}', '{"schema": 99}'])
def test_a_damaged_store_is_found_before_the_run(store: Store, content: str) -> None:
    """A truncated, foreign or newer file among the results stops the run before it begins, and stays as it is."""
    swept = run_toys(store, "slow/fix-a", folder=SLOW)
    path = swept.folder / "slow.json"
    path.write_text(content)
    watcher = Watcher()
    with pytest.raises(StoreError, match="slow.json"):
        run_toys(store, "slow/fix-a", folder=SLOW, watcher=watcher)
    assert watcher.totals is None
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"machine": "a/b"}, "'a/b' cannot name a machine"),
        ({"sizes": {"elephants": 3}}, "no chosen case takes a size 'elephants'"),
        ({"python": "/no/such/python"}, "no interpreter"),
    ],
)
def test_bad_wishes(store: Store, wishes: dict[str, Any], message: str) -> None:
    """What cannot be done as asked is refused by name, and nothing is written."""
    with pytest.raises(ReplaydriftError, match=message):
        run_toys(store, folder=SLOW, **wishes)
    assert not store.root.exists()


def test_an_unknown_case(store: Store) -> None:
    """A pattern that matches nothing is refused with the nearest names."""
    with pytest.raises(LibraryError, match="did you mean"):
        run_toys(store, "slow/fix-c", folder=SLOW)


def test_no_right_to_write(tmp_path: Path) -> None:
    """A store that cannot be written is found before anything runs."""
    (tmp_path / "results").write_text("a file")
    watcher = Watcher()
    with pytest.raises(ReplaydriftError, match="results"):
        run_toys(Store(tmp_path / "results"), folder=SLOW, watcher=watcher)
    assert not any(line.startswith("attempt") for line in watcher.told)


def test_little_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full is found before anything runs."""
    monkeypatch.setattr(sweeping, "_LEAST_FREE_BYTES", 2**62)
    with pytest.raises(RunError, match="MiB free, but 5 attempts may take"):
        run_toys(store, folder=SLOW)


def test_the_disk_fills_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up on the way loses nothing that ended: the sweep goes on with --resume once there is room."""
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 4:  # The header and two reports fit.
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device; the 2 attempts before are kept"):
        run_toys(store, folder=SLOW, jobs=1)
    monkeypatch.undo()
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    watcher = Watcher()
    run_toys(store, folder=SLOW, jobs=1, resume=True, watcher=watcher)
    assert watcher.totals == (2, 5)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "none", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that fills up what was kept is whole, and with more room the sweep goes on from there."""
    monkeypatch.setattr(sweeping, "_LEAST_FREE_BYTES", 0)
    monkeypatch.setattr(sweeping, "_BYTES_AN_ATTEMPT", 0)
    store = Store(small_disk / "results")
    toys = {"folder": HERE / "toys", "attempts": 6, "jobs": 1}
    with pytest.raises(RunError, match="No space left on device; the [1-9] attempts before are kept"):
        run_toys(store, "hostile/prints-much", **toys)
    with pytest.raises(RunError, match="No space left on device"):
        run_toys(store, "hostile/prints-much", resume=True, **toys)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    watcher = Watcher()
    swept = run_toys(store, "hostile/prints-much", resume=True, watcher=watcher, **toys)
    assert watcher.totals is not None
    assert 1 <= watcher.totals[0] < 12 == watcher.totals[1]
    assert [attempt.outcome.text for attempt in swept.records[0].attempts] == ["correct"] * 6


def test_a_full_disk_when_the_store_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the last step fails, --resume runs nothing again and writes the records."""

    def full(*_: object) -> None:
        raise StoreError("cannot write: No space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(StoreError):
        run_toys(store, folder=SLOW)
    monkeypatch.undo()
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    watcher = Watcher()
    swept = run_toys(store, folder=SLOW, resume=True, watcher=watcher)
    assert watcher.totals == (5, 5)
    assert len(store.read(swept.environment.machine, swept.environment.release).cases) == 4


def test_an_edited_case_does_not_go_on(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep whose case was edited meanwhile is not mixed: the journal is refused, and --fresh begins again."""
    source = (SLOW / "slow.py").read_text()
    (tmp_path / "slow.py").write_text(source)
    monkeypatch.setattr(Store, "write", lambda *_: (_ for _ in ()).throw(StoreError("full")))
    with pytest.raises(StoreError):
        run_toys(store, "slow/bug", folder=tmp_path)
    monkeypatch.undo()
    for name, value in environ().items():
        monkeypatch.setenv(name, value)
    (tmp_path / "slow.py").write_text(source.replace('yield "replay", 2', 'yield "replay", 3'))
    with pytest.raises(RunError, match="differs in cases"):
        run_toys(store, "slow/bug", folder=tmp_path, resume=True)
    assert len(run_toys(store, "slow/bug", folder=tmp_path, fresh=True).records) == 1


@pytest.mark.parametrize(("imports", "preloaded"), [("", "correct"), ("touches CUDA", "wrong")])
def test_cuda_stays_untouched_in_the_server(store: Store, monkeypatch: pytest.MonkeyPatch, imports: str, preloaded: str) -> None:
    """The process that forks attempts has not initialised CUDA, although the facts of the GPU were asked for.

    Slow imports are shared by all attempts, unless a release touches CUDA in them.
    """
    monkeypatch.setenv("FAKE_TORCH_DYNAMO", imports)
    swept = run_toys(store, "plain/untouched", "plain/preloaded", folder=HERE / "toys")
    outcomes = {record.case: record.attempts[0].outcome.text for record in swept.records}
    assert outcomes == {"plain/untouched": "correct", "plain/preloaded": preloaded}


def test_run_as_a_program_reads_it(tmp_path: Path) -> None:
    """`run --json` prints one JSON object on stdout, and progress as plain lines on stderr."""
    done = subprocess.run(
        command(tmp_path / "results", "--json", "--attempts", "2"),
        env=environment(), check=True, capture_output=True, text=True, timeout=60,
    )
    tree = json.loads(done.stdout)
    assert tree["verdicts"] == {"reproduced": 1, "holds": 3}
    assert tree["cases"]["slow/bug"]["outcomes"] == {"wrong": 2}
    assert "\x1b" not in done.stderr
    assert "[10/10] slow/fix-alone #2: holds" in done.stderr


def test_run_as_a_person_reads_it(tmp_path: Path) -> None:
    """`run` ends with how many cases have each verdict, and where the records are."""
    done = subprocess.run(command(tmp_path / "results"), env=environment(), check=True, capture_output=True, text=True, timeout=60)
    assert "reproduced  1" in done.stdout
    assert "4 cases of torch 2.99.0+fake in" in done.stdout


@pytest.mark.parametrize("wrong", [["--size", "elements"], ["--size", "elements=big"], ["--attempts", "0"], ["--resume", "--fresh"]])
def test_usage_errors(tmp_path: Path, wrong: list[str]) -> None:
    """Options that make no sense are refused as such."""
    done = subprocess.run(command(tmp_path, *wrong), env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Usage:" in done.stderr
