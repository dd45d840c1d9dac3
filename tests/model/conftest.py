"""Tests marked `modelled` run where `torch.cuda` is the CPU model: each in a fork of one process that has it installed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import model_server
import pytest

_HERE = Path(__file__).parent
_LIMIT_S = 120
_key: pytest.StashKey[Any] = pytest.StashKey()


class Server:
    """The process with the model, started when the first test asks for it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the session

    def run(self, path: Path, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
        """How the test went, and the reason in words."""
        if self._process is None:
            search = os.pathsep.join([str(_HERE.parents[1] / "src"), str(_HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
            self._process = subprocess.Popen(
                [sys.executable, str(_HERE / "model_server.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1"},
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        model_server.write(process.stdin, (path, name, arguments))
        if not select.select([process.stdout], [], [], _LIMIT_S)[0]:
            self.stop()
            return "failed", f"no answer within {_LIMIT_S} s"
        answer: tuple[str, str] | None = model_server.read(process.stdout)
        if answer is None:
            self.stop()
            self._errors.seek(0)
            return "failed", f"the process with the model ended:\n{self._errors.read().decode(errors='replace')[-4000:]}"
        return answer

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process.wait(timeout=30)
            self._process = None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "modelled: runs in a fork of a process in which the CPU model of CUDA graphs is installed")
    config.stash[_key] = Server()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process with the tests."""
    config.stash[_key].stop()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a modelled test over there; every other test is pytest's."""
    if pyfuncitem.get_closest_marker("modelled") is None:
        return None
    names = getattr(pyfuncitem, "callspec", None)
    outcome, reason = pyfuncitem.config.stash[_key].run(
        pyfuncitem.path, pyfuncitem.getmodpath(includemodule=False).split("[")[0], dict(names.params) if names else {}
    )
    if outcome == "skipped":
        pytest.skip(reason)
    if outcome == "failed":
        pytest.fail(reason, pytrace=False)
    return True
