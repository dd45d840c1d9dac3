"""Processes as Linux shows them: families, memory, and making sure that none outlives its attempt."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    session: int
    state: str


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def become_subreaper() -> None:
    """From now on orphans among this process's descendants become its own children, instead of getting out of reach."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies; end at once where it is dead already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def offer_to_oom_killer() -> None:
    """Where memory runs out, the kernel takes this process before anyone else's."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def table() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = _stat(int(name))
            if process is not None:
                found[process.pid] = process
    return found


def _stat(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, parentheses and spaces included.
    state, parent, _group, session = text[text.rindex(b")") + 2 :].split()[:4]
    return Process(pid, int(parent), int(session), state.decode())


def family(root: int, everyone: dict[int, Process]) -> set[int]:
    """The process `root`, all its descendants, and all of its session."""
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    queue = [root, *(process.pid for process in everyone.values() if process.session == root)]
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue += children.get(pid, [])
    return found


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to each; those that are gone are gone."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def memory_bytes(pid: int) -> int:
    """Memory that the process holds for itself: anonymous and shared-memory pages, without those of mapped files."""
    total = 0
    with suppress(OSError, ValueError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory since it started; 0 where it does not say."""
    with suppress(OSError), open("/proc/vmstat", "rb") as file:
        for line in file:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def signal_name(number: int) -> str:
    """`SIGSEGV`, or `signal 40` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
