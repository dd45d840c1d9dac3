"""A process in which the CPU model is installed; each test runs in a fork of it, since the model stays in a process for good."""

from __future__ import annotations

import ast
import gc
import os
import pickle
import struct
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import IO, Any


def read(stream: IO[bytes]) -> Any:
    """The next message, or None at the end."""
    head = stream.read(4)
    return pickle.loads(stream.read(struct.unpack("<I", head)[0])) if len(head) == 4 else None


def write(stream: IO[bytes], message: Any) -> None:
    """Send a message: its length, then its pickle."""
    data = pickle.dumps(message)
    stream.write(struct.pack("<I", len(data)) + data)
    stream.flush()


def load(path: Path) -> ModuleType:
    """The test module, with the assertions that explain themselves which pytest makes."""
    from _pytest.assertion.rewrite import rewrite_asserts

    source = path.read_bytes()
    tree = ast.parse(source, str(path))
    rewrite_asserts(tree, source, str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    exec(compile(tree, str(path), "exec"), vars(module))
    return module


def run(path: Path, qualified_name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """How the test went (passed, skipped or failed), and the reason in words."""
    import pytest

    try:
        found: Any = load(path)
        for name in qualified_name.split("."):
            found = getattr(found() if isinstance(found, type) else found, name)
        found(**arguments)
    except pytest.skip.Exception as reason:
        return "skipped", str(reason)
    except BaseException:  # noqa: BLE001 - the test's outcome, whatever it raised
        return "failed", traceback.format_exc(limit=-8)
    return "passed", ""


def in_a_fork(request: tuple[Path, str, dict[str, Any]]) -> tuple[str, str]:
    """The same, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as stream:
            write(stream, run(*request))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        outcome: tuple[str, str] | None = read(stream)
    _, status = os.waitpid(child, 0)
    return outcome or ("failed", f"the process of the test ended with status {status}")


def main() -> None:
    """Answer requests on standard input until it ends; what tests print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import torch  # noqa: F401 - the model wants torch imported first

    import replaydrift.model

    replaydrift.model.install()
    gc.collect()
    gc.freeze()  # A fork's collections then leave the pages alone that it shares.
    while (request := read(sys.stdin.buffer)) is not None:
        write(answers, in_a_fork(request))


if __name__ == "__main__":
    main()
