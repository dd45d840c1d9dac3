"""Starting the server beside torch in any interpreter, and talking to it.

The interpreter need not have replaydrift: the package is loaded from its folder, and that folder's parent is not put on the
search path, since it may be a site-packages that holds another torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from replaydrift.errors import RunError

# Importing torch from a cold network file system takes minutes at worst.
IMPORT_LIMIT_S: Final = 600.0
_PREPARE_LIMIT_S: Final = 600.0
PACKAGE: Final = Path(__file__).resolve().parent

# Loads the package from the folder in argv[1]. Must be readable by any Python, or an old one could not say that it is too old.
# The empty entry of sys.path is the folder from which a person started the driver: a `torch/` in it must not be imported.
LOADING: Final = """
import sys
if sys.version_info < (3, 10):
    sys.exit("Python %d.%d is too old: expected 3.10 or later" % sys.version_info[:2])
import importlib.util
sys.path[:] = [entry for entry in sys.path if entry]
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location("replaydrift", folder + "/__init__.py", submodule_search_locations=[folder])
package = sys.modules["replaydrift"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
"""
_BOOTSTRAP: Final = f"""{LOADING}
descriptor, scratch, first = int(sys.argv[2]), sys.argv[3], sys.argv[4:]
from replaydrift.child.server import main
main(descriptor, scratch, *first)
"""


class ServerDiedError(Exception):
    """The server ended or fell silent; the text says how, for the record of the attempts that were under way."""


@dataclass(frozen=True)
class Prepared:
    """What the server settled: the engine, and the facts of its environment."""

    engine: str
    facts: dict[str, Any]


class Server:
    """A running server. Use it as a context manager: leaving it ends the server and every attempt under way."""

    def __init__(self, python: str) -> None:
        self.python = interpreter(python)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        # Attempts stand in folders of their own below this one. The server removes it, and so does this side: either may be killed.
        self._scratch = tempfile.mkdtemp(prefix="replaydrift-")
        ours, theirs = socket.socketpair()
        self._channel = ours
        self._input = b""
        try:
            self._process = subprocess.Popen(
                [self.python, "-c", _BOOTSTRAP, str(PACKAGE), str(theirs.fileno()), self._scratch],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,  # Ctrl-C in a terminal is for the driver alone.
            )
        except OSError as error:
            ours.close()
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise RunError(f"cannot start {self.python!r}: {error.strerror or error}; name a Python with --python PATH") from error
        finally:
            theirs.close()
        self.release = ""

    @property
    def pid(self) -> int:
        """The server's process; it leads a session of its own, and every attempt one below it."""
        return self._process.pid

    def fileno(self) -> int:
        """The descriptor that becomes readable when the server says something."""
        return self._channel.fileno()

    def hello(self) -> str:
        """The release of torch that was imported; RunError where the import failed."""
        self.release = str(self._expect("hello", IMPORT_LIMIT_S)["release"])
        return self.release

    def prepare(self, engine: str, *, facts: bool = True) -> Prepared:
        """The engine that will execute cases (`auto` decides), with the facts of the environment; RunError where it cannot."""
        self._send({"do": "prepare", "engine": engine, "facts": facts})
        answer = self._expect("prepared", _PREPARE_LIMIT_S)
        return Prepared(answer["engine"], answer["facts"])

    def run(self, **request: Any) -> None:
        """Ask for one attempt; its report comes as a message later."""
        self._send({"do": "run", **request})

    def messages(self, timeout_s: float) -> list[dict[str, Any]]:
        """What the server has said, after waiting at most so long for it; ServerDiedError once it has ended."""
        if not select.select([self._channel], [], [], timeout_s)[0]:
            return []
        try:
            data = self._channel.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            raise ServerDiedError(self._how_it_ended())
        *lines, self._input = (self._input + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise ServerDiedError(self._how_it_ended()) from error

    def _expect(self, kind: str, limit_s: float) -> dict[str, Any]:
        give_up = time.monotonic() + limit_s
        while time.monotonic() < give_up:
            try:
                said = self.messages(min(1.0, limit_s))
            except ServerDiedError as error:
                raise RunError(f"{self.python!r} {error}: expected a Python that can import torch; name one with --python PATH") from error
            for message in said:
                if "failed" in message:
                    raise RunError(f"{self.python!r}: {message['failed']}")
                if kind in message:
                    answer: dict[str, Any] = message[kind]
                    return answer
        raise RunError(f"{self.python!r} did not answer within {limit_s:g} s: does `{self.python} -c 'import torch'` end?")

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        if code is None:
            how = "closed its connection"
        elif code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit code {code}"
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f"{how} ({lines[-1].strip()})" if lines else how

    def close(self) -> None:
        """End the server with every attempt under way, gently where it listens."""
        self._channel.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def kill(self) -> None:
        """End a server that no longer answers; its attempts die with it."""
        self._process.kill()
        self.close()

    def __enter__(self) -> Server:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def interpreter(python: str) -> str:
    """The interpreter's absolute path, symbolic links kept: a virtual environment is known by the path it is started with."""
    found = shutil.which(python)
    if found is None:
        raise RunError(f"no interpreter {python!r}: expected the path of a Python, such as 'env/bin/python'")
    return os.path.abspath(found)  # noqa: PTH100 - Path.resolve() would follow the links
