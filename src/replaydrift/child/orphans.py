"""Processes that cases left behind: found among the server's own children, and killed once their attempt is over.

The server is a subreaper, so whatever an attempt started ends up as its child when the attempt ends. A process that kept its
attempt's session is known by it. One that made a session of its own may be anyone's: it is killed with the last attempt that
was under way when it was first seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Mapping

from replaydrift.child import processes
from replaydrift.child.processes import Process


class Orphans:
    """Keeps track of children that are no attempts. `reap` takes exit statuses and returns False once no child is left."""

    def __init__(self, reap: Callable[[], bool]) -> None:
        self._reap = reap
        self._makers: dict[int, set[int]] = {}  # pid of an orphan → pids of the attempts that may have made it
        self._sessions: set[int] = set()  # pids of all attempts that have ended

    def attempt_ended(self, pid: int) -> None:
        """Remember that the attempt with this pid is over."""
        self._sessions.add(pid)
        for makers in self._makers.values():
            makers.discard(pid)

    def kill_stray(self, running: Container[int], table: Mapping[int, Process]) -> bool:
        """Kill the orphans whose attempts are over; True where there were any. `running` has the pids of attempts under way."""
        everyone = dict(table)
        children = [process for process in everyone.values() if process.parent == os.getpid() and process.pid not in running]
        self._makers = {process.pid: self._makers[process.pid] for process in children if process.pid in self._makers}
        doomed: set[int] = set()
        for process in children:
            if process.session in running:
                continue
            if process.session not in self._sessions:
                makers = self._makers.setdefault(process.pid, {pid for pid in everyone if pid in running})
                if makers:
                    continue
            doomed |= processes.family(process.pid, everyone)
        processes.kill(doomed)
        return bool(doomed)

    def kill_all(self, within_s: float = 5.0) -> None:
        """Kill every child and what descends from it, until none is left or the time is over."""
        give_up = time.monotonic() + within_s
        while self._reap() and time.monotonic() < give_up:
            self.kill_stray((), processes.table())
            time.sleep(0.005)
