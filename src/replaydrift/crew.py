"""Running tasks on a server, several at once, and going on when a case takes the server down with it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from replaydrift.launch import Server, ServerDiedError
from replaydrift.plan import Task

# A server is given up for hung when an attempt is this much over its limit and nothing was said about it.
_SILENCE_S: Final = 60.0
_TICK_S: Final = 0.25
# Attempts that were under way when a server died run once more, each by itself: the one that does it again is the one to blame.
_MOST_TRIES: Final = 2


@dataclass
class _UnderWay:
    task: Task
    attempt: int
    begun: float


@dataclass(frozen=True)
class Happened:
    """What came of waiting a moment: an attempt ended with this report, or nothing did (`report` is None)."""

    task: Task | None = None
    attempt: int = 0
    report: dict[str, Any] | None = None


def run_all(
    queue: Sequence[tuple[Task, int]],
    start: Callable[[], Server],
    *,
    server: Server,
    jobs: int,
    memory_bytes: int,
) -> Generator[Happened, None, None]:
    """What happens while every (task, attempt) of the queue runs: each ended attempt, and now and then nothing, for the clock.

    At most `jobs` run at once, and one that runs alone has the server to itself. `start` gives a new server when one died. Closing the
    iterator ends the server; what was under way is then not reported.
    """
    waiting, suspects = deque(queue), deque[tuple[Task, int]]()
    under_way: dict[int, _UnderWay] = {}
    tries: dict[tuple[str, int], int] = {}
    number = 0
    try:
        while waiting or suspects or under_way:
            try:
                while (following := _next(waiting, suspects, under_way, jobs)) is not None:
                    task, attempt = following
                    number += 1
                    # Noted first: a server that dies of the request itself must not lose the attempt.
                    under_way[number] = _UnderWay(task, attempt, time.monotonic())
                    server.run(**_request(number, task, memory_bytes))
                for message in _messages(server, under_way):
                    ended = under_way.pop(message["ended"])
                    yield Happened(ended.task, ended.attempt, message["report"])
                yield Happened()
            except ServerDiedError as error:  # noqa: PERF203 - a dead server ends one turn, not the loop
                server.kill()
                for ended in under_way.values():
                    key = (ended.task.name, ended.attempt)
                    tries[key] = tries.get(key, 0) + 1
                    if tries[key] < _MOST_TRIES:
                        suspects.append((ended.task, ended.attempt))
                    else:
                        reason = f"the server that ran it {error}, twice while this attempt was under way"
                        yield Happened(ended.task, ended.attempt, broken(reason))
                under_way.clear()
                server = start()
    finally:
        server.close()


def _next(
    waiting: deque[tuple[Task, int]],
    suspects: deque[tuple[Task, int]],
    under_way: dict[int, _UnderWay],
    jobs: int,
) -> tuple[Task, int] | None:
    """What may begin now: suspects by themselves and first, then the queue in order."""
    if suspects:
        return suspects.popleft() if not under_way else None
    if not waiting or len(under_way) >= jobs or any(running.task.alone for running in under_way.values()):
        return None
    if under_way and waiting[0][0].alone:
        return None
    return waiting.popleft()


def _messages(server: Server, under_way: dict[int, _UnderWay]) -> list[dict[str, Any]]:
    messages = server.messages(_TICK_S)
    now = time.monotonic()
    if not messages and any(now > running.begun + running.task.limit_s + _SILENCE_S for running in under_way.values()):
        raise ServerDiedError("fell silent")
    return messages


def _request(number: int, task: Task, memory_bytes: int) -> dict[str, Any]:
    return {
        "id": number,
        "path": task.path,
        "function": task.function,
        "options": dict(task.options),
        "scale": task.scale,
        "limit_s": task.limit_s,
        "memory_bytes": memory_bytes,
        "overlaps": task.overlaps,
    }


def broken(reason: str) -> dict[str, Any]:
    """The report of an attempt that could not be run to an end, for a reason that is not the case's."""
    return {
        "how": "broken", "detail": reason, "values": [], "warnings": [], "chain": [], "stdout": "", "stderr": "",
        "duration_ms": None, "capture_ms": None, "rules": [],
    }  # fmt: skip
