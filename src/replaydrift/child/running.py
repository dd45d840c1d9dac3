"""One attempt as the server sees it: a process, three pipes to drain, and a report once it has ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from replaydrift.child import attempt, processes
from replaydrift.child.attempt import Task
from replaydrift.child.output import HeadTail, StderrReader

_CHUNK: Final = 256 * 1024
_LARGEST_REPORT: Final = 16 * 1024 * 1024
_GRACE_S: Final = 0.2
_LOST_AFTER_S: Final = 15.0


class Running:
    """A forked process that runs one task. The server feeds it what comes through its pipes and asks for the report at the end."""

    def __init__(self, number: int, task: Task, limit_s: float, memory_limit: int, scratch: str) -> None:
        self.number = number
        self.task = task
        self.limit_s = limit_s
        self.memory_limit = memory_limit
        self.pid = 0
        self.status: int | None = None
        self.readers: dict[int, Callable[[bytes], None]] = {}
        self._deadline = time.monotonic() + limit_s
        self._kill_at: float | None = None
        self._killed_first: float | None = None
        self._stopped: tuple[str, str] | None = None
        self._oom_kills = processes.oom_kills()
        self._scratch = tempfile.mkdtemp(dir=scratch)
        self._stdout, self._stderr = HeadTail(), StderrReader()
        self._events = b""
        self._event_bytes = 0
        self._values: list[list[Any]] = []
        self._warnings: dict[tuple[str, str], int] = {}
        self._end: dict[str, Any] | None = None

    def start(self, model: Any, close_first: Iterable[int]) -> None:
        """Fork. The new process closes the server's descriptors, leads a session of its own and dies with the server."""
        pipes = [os.pipe() for _ in range(3)]
        server = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                processes.die_with_parent(server)
                report, stdout, stderr = (write for _, write in pipes)
                os.dup2(stdout, 1)
                os.dup2(stderr, 2)
                for descriptor in (*close_first, stdout, stderr, *(read for read, _ in pipes)):
                    os.close(descriptor)
                os.chdir(self._scratch)
                attempt.run(self.task, report, model)
            finally:
                attempt.fail_loudly()
        for (read, write), feed in zip(pipes, (self._take_events, self._stdout.feed, self._stderr.feed), strict=True):
            os.close(write)
            os.set_blocking(read, False)
            self.readers[read] = feed

    def drain(self, descriptor: int) -> bool:
        """Read what is there; False once the other end is closed."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return True
        self.readers[descriptor](data)
        return bool(data)

    def watch(self, now: float) -> None:
        """Stop the process at its time limit: first ask for its stack, then kill it."""
        if self._kill_at is not None and now >= self._kill_at:
            self.kill()
            self._kill_at = now + 1.0
        elif self._kill_at is None and now >= self._deadline:
            self._stopped = ("timed-out", f"{self.limit_s:g} s")
            with suppress(OSError):
                os.kill(self.pid, signal.SIGUSR2)
            self._kill_at = now + _GRACE_S

    def watch_memory(self, held: int) -> None:
        """Stop the process where it and its children hold more memory than an attempt may."""
        if held > self.memory_limit and self._stopped is None:
            self._stop(f"it took more memory than the {self.memory_limit / 2**30:.3g} GiB an attempt may hold, and was stopped")

    def _stop(self, reason: str) -> None:
        self._stopped = ("broken", reason)
        self.kill()
        self._kill_at = time.monotonic() + 1.0

    def kill(self) -> None:
        """Kill the process with all that descends from it or shares its session."""
        self._killed_first = self._killed_first or time.monotonic()
        for _ in range(3):  # A process may fork between the look at the table and the signal.
            processes.kill(processes.family(self.pid, processes.table()) if self.status is None else {self.pid})
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def lost(self) -> bool:
        """True where the process was killed long ago and still has not ended: it hangs inside the kernel or a driver."""
        return self.status is None and self._killed_first is not None and time.monotonic() > self._killed_first + _LOST_AFTER_S

    def close(self) -> None:
        """Drain what is left, close the pipes and remove the scratch folder."""
        for descriptor in list(self.readers):
            for _ in range(64):  # A copy that got away could write for ever.
                try:
                    data = os.read(descriptor, _CHUNK)
                except BlockingIOError:
                    break
                if not data:
                    break
                self.readers[descriptor](data)
            os.close(descriptor)
        self.readers.clear()
        self._stderr.finish()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _take_events(self, data: bytes) -> None:
        self._event_bytes += len(data)
        if self._event_bytes > _LARGEST_REPORT:
            if self._stopped is None:
                self._stop(f"it showed more than {_LARGEST_REPORT // 2**20} MiB of values: yield fewer or smaller ones")
            return
        *lines, self._events = (self._events + data).split(b"\n")
        for line in lines:
            try:
                self._take_event(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):  # noqa: PERF203 - each line stands for itself
                self._stop("it wrote into the pipe through which attempts report")

    def _take_event(self, event: dict[str, Any]) -> None:
        kind = event.pop("event")
        if kind == "value":
            self._values.append([event["step"], event["value"]])
        elif kind == "warning":
            self._warnings[event["category"], event["text"]] = 1
        else:
            self._end = event
            self._warnings.update({(category, text): count for category, text, count in event["counts"]})

    def report(self, places: Iterable[str]) -> dict[str, Any]:
        """Everything that is known of the attempt as plain JSON, in texts without the folders of this machine (`places`)."""
        folders = sorted({os.path.dirname(self.task.path), self._scratch, *places} - {"", "/"}, key=len, reverse=True)

        def relative(text: str) -> str:
            for folder in folders:
                text = text.replace(folder + "/", "")
            return text

        end = self._end or {}
        how, detail = self._ending()
        warned = [(category, text, count) for (category, text), count in self._warnings.items()]
        warned += [("stderr", text, count) for text, count in self._stderr.warnings.items()]
        return {
            "how": how,
            "detail": None if detail is None else relative(detail),
            "values": self._values,
            "warnings": [{"category": category, "text": relative(text), "count": count} for category, text, count in warned],
            "chain": [{**link, "text": relative(link["text"])} for link in end.get("chain", [])],
            "stdout": relative(self._stdout.text()),
            "stderr": relative(self._stderr.rest.text()),
            "duration_ms": end.get("duration_ms"),
            "capture_ms": end.get("capture_ms"),
            "rules": end.get("rules", []),
        }

    def _ending(self) -> tuple[str, str | None]:
        """How it ended, with the detail that this kind of end has."""
        if self._stopped is not None:
            return self._stopped
        if self._end is not None:
            return self._end["how"], self._end.get("detail")
        if self.status is None:
            return "broken", "it did not end when it was killed"
        if os.WIFSIGNALED(self.status):
            name = processes.signal_name(os.WTERMSIG(self.status))
            if name == "SIGKILL" and processes.oom_kills() > self._oom_kills:
                return "broken", "the kernel killed it because this machine ran out of memory"
            return "crashed", name
        code = os.WEXITSTATUS(self.status)
        if code == attempt.NO_REPORT:
            return "broken", f"it could not report: the case closed its descriptors, or this program failed ({self._last_line()})"
        return "crashed", f"exit {code}"

    def _last_line(self) -> str:
        lines = self._stderr.rest.text().strip().splitlines()
        return lines[-1].strip() if lines else "stderr is empty"
