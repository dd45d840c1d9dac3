"""The server: what it says of its environment, which engine it takes, and what it survives."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from toybox import FAKE_TORCH, HERE, run_toys

from replaydrift.child.environment import variables
from replaydrift.child.processes import table
from replaydrift.errors import RunError
from replaydrift.launch import Server
from replaydrift.store import Store

pytestmark = pytest.mark.usefixtures("fake_torch")


def test_facts_of_a_gpu() -> None:
    """With a device, `auto` is the GPU, and the facts name torch, Python and the GPU, and nothing that changes from run to run."""
    told = []
    for _ in range(2):
        with Server(sys.executable) as server:
            assert server.hello() == "2.99.0+fake"
            prepared = server.prepare("auto")
        assert prepared.engine == "cuda"
        told.append(prepared.facts)
    assert told[0] == told[1]
    assert told[0]["torch"] == {"version": "2.99.0+fake", "git_version": "0123456789abcdef", "cuda": "13.0"}
    assert told[0]["gpu"]["name"] == "NVIDIA Fake H200"
    assert told[0]["python"]["version"] == sys.version.split()[0]


@pytest.mark.parametrize(("cuda", "reason"), [("", "built without CUDA"), ("13.0", "libcuda.so.1 cannot be loaded")])
def test_no_gpu(monkeypatch: pytest.MonkeyPatch, cuda: str, reason: str) -> None:
    """Without a device, engine `cuda` is refused with the reason: a CPU wheel, or no driver."""
    if cuda and Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a driver here")
    monkeypatch.setenv("FAKE_TORCH_GPU", "")
    monkeypatch.setenv("FAKE_TORCH_CUDA", cuda)
    with Server(sys.executable) as server:
        server.hello()
        with pytest.raises(RunError, match=reason):
            server.prepare("cuda")


def test_variables() -> None:
    """Variables that steer torch and CUDA are facts; those that only say where things lie are not."""
    given = {"PYTORCH_CUDA_ALLOC_CONF": "a", "CUBLAS_WORKSPACE_CONFIG": ":16:8", "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "1"}
    ignored = {"HOME": "/root", "CUDA_VISIBLE_DEVICES": "1", "TORCH_HOME": "/x", "TORCH_EXTENSIONS_DIR": "/x", "MY_CUDA_THING": "1"}
    assert variables(given | ignored) == given


def test_an_interpreter_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python that cannot import torch is named with what its import said."""
    monkeypatch.setenv("PYTHONPATH", "")
    # Without its site-packages, this interpreter has no torch even where the tests run beside one.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    with Server(str(bare)) as server, pytest.raises(RunError, match="cannot import torch: ModuleNotFoundError"):
        server.hello()


def test_no_interpreter() -> None:
    """A path that is no program is refused by name."""
    with pytest.raises(RunError, match="no interpreter 'no/such/python'"):
        Server("no/such/python")


def test_a_program_that_is_no_python() -> None:
    """A program that is no Python is refused with how it ended."""
    with Server("/bin/false") as server, pytest.raises(RunError, match="ended with exit code 1"):
        server.hello()


def test_torch_in_the_current_folder_is_not_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder `torch` where a person stands is not what a server imports, and no folder of ours is on its search path."""
    (tmp_path / "torch.py").write_text("__version__ = 'wrong'\n")
    monkeypatch.chdir(tmp_path)
    with Server(sys.executable) as server:
        assert server.hello() == "2.99.0+fake"


def test_a_noisy_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an import prints does not disturb the talk with the server."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text('__version__ = "1+noise"\nprint(\'{"hello": {"release": "no"}}\', flush=True)\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Server(sys.executable) as server:
        assert server.hello() == "1+noise"


def test_a_case_that_kills_the_server(store: Store) -> None:
    """A server killed by a case is started again; the case is broken with the reason, those beside it have their outcomes."""
    swept = run_toys(store, folder=HERE / "toys_parent", jobs=3)
    outcomes = {record.case: record.attempts[0].outcome.text for record in swept.records}
    assert outcomes.pop("parent/kills-its-parent").startswith("broken:the server that ran it was killed by SIGKILL, twice")
    assert outcomes == {"parent/innocent": "correct", "parent/innocent-too": "correct"}


def test_nothing_survives_a_killed_server() -> None:
    """An attempt dies with its server."""
    with Server(sys.executable) as server:
        server.hello()
        server.prepare("cuda", facts=False)
        path = str(HERE / "toys" / "hostile.py")
        server.run(id=1, path=path, function="hangs", options={}, scale=1.0, limit_s=60, memory_bytes=2**40, overlaps=True)
        give_up = time.monotonic() + 5
        while not (attempts := _children(server.pid)) and time.monotonic() < give_up:
            time.sleep(0.02)
        assert attempts
        os.kill(server.pid, signal.SIGKILL)
        while any(map(_alive, attempts)) and time.monotonic() < give_up + 5:
            time.sleep(0.02)
        assert not any(map(_alive, attempts))


def _children(pid: int) -> list[int]:
    return [process.pid for process in table().values() if process.parent == pid]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_file_that_does_not_load(store: Store) -> None:
    """A file whose import fails is broken with the reason; one that needs a name torch lacks raises, as it would for a user."""
    swept = run_toys(store, folder=HERE / "toys_unloadable")
    outcomes = {record.case: record.attempts[0].outcome.text for record in swept.records}
    assert outcomes["unloadable/bug"].startswith("broken:unloadable.py does not import: ModuleNotFoundError: No module named 'a_module")
    assert outcomes["newer/bug"].startswith("raised:ImportError: cannot import name 'a_name_of_later' from 'torch.cuda'")
    assert str(FAKE_TORCH) not in outcomes["newer/bug"]
