"""Work in processes of their own: what it tells on the way is kept, and how it ended is known even where it crashed or hung."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from replaydrift.child import processes

Tell = Callable[[dict[str, Any]], None]


@dataclass
class Ending:
    """How a process ended: nothing where it ended well, else `crashed: SIGSEGV`, `exit 3` or `timed-out: 60 s`."""

    how: str = ""


@dataclass
class Apart:
    """A process forked to do some work. Iterate over it for what the work tells; `ending` is filled when that is over.

    It is stopped when it has told nothing for `limit_s`.
    """

    work: Callable[[Tell], None]
    limit_s: float
    ending: Ending = field(default_factory=Ending)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        read, write = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            self._in_the_fork(parent, write)
        os.close(write)
        stopped = False
        try:
            rest, give_up = b"", time.monotonic() + self.limit_s
            while True:
                if not select.select([read], [], [], max(0.0, give_up - time.monotonic()))[0]:
                    stopped = True
                    break
                data = os.read(read, 1 << 16)
                if not data:
                    break
                give_up = time.monotonic() + self.limit_s
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        finally:
            os.close(read)
            self.ending.how = _end(pid, kill=stopped or sys.exc_info()[0] is not None)
            if stopped:
                self.ending.how = f"timed-out: {self.limit_s:g} s"

    def _in_the_fork(self, parent: int, pipe: int) -> None:
        """Do the work and leave, whatever happens."""
        status = 1
        try:
            os.setsid()
            processes.die_with_parent(parent)

            def tell(message: dict[str, Any]) -> None:
                data = json.dumps(message).encode() + b"\n"
                while data:
                    data = data[os.write(pipe, data) :]

            self.work(tell)
            status = 0
        except BaseException:  # noqa: BLE001 - the parent says that it failed, stderr says why
            traceback.print_exc(file=sys.stderr)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            os._exit(status)


def _end(pid: int, *, kill: bool) -> str:
    """How the process ended; it is killed first where that is wanted."""
    if kill:
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return f"crashed: {processes.signal_name(os.WTERMSIG(status))}"
    return f"exit {os.WEXITSTATUS(status)}" if os.WEXITSTATUS(status) else ""
