"""The server: imports torch once, never touches CUDA, and forks a process for each attempt that the driver asks for.

It speaks lines of JSON over one socket whose number it is given, so that nothing printed by an import or by a case can
disturb the talk. Requests: `prepare`, `run`. Answers: `hello` or `failed`, `prepared`, `ended`. A closed socket means stop.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import unittest.case  # noqa: F401 - imported here once, so that no attempt pays for it
from contextlib import suppress
from typing import Any, Final

from replaydrift.child import environment, processes
from replaydrift.child.attempt import Task
from replaydrift.child.orphans import Orphans
from replaydrift.child.running import Running

_TICK_S: Final = 0.05
_SCAN_S: Final = 0.5


class Server:
    """Serves one driver over one socket until the socket closes."""

    def __init__(self, channel: socket.socket, scratch: str, first: dict[str, Any] | None = None) -> None:
        """`first` is the request that made an earlier server of this process begin anew: nothing is preloaded then."""
        self._channel = channel
        self._scratch = scratch
        self._first = first
        self._may_preload = first is None
        self._input = b""
        self._running: dict[int, Running] = {}  # by pid
        self._orphans = Orphans(self._reap)
        self._model: Any = None
        self._places: tuple[str, ...] = ()
        self._next_scan = 0.0
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)

    def serve(self) -> None:
        """Answer until the driver closes the socket; leave no process behind."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        processes.become_subreaper()
        try:
            if self._import_torch():
                if self._first is not None:
                    self._answer(self._first)
                while self._turn():
                    pass
        finally:
            for running in self._running.values():
                running.kill()
            self._running.clear()
            self._orphans.kill_all()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _import_torch(self) -> bool:
        try:
            torch = importlib.import_module("torch")
            release = str(torch.__version__)
        except BaseException as error:  # noqa: BLE001 - the driver says what stopped the import
            self._send({"failed": f"cannot import torch: {type(error).__name__}: {error}"})
            return False
        folder = os.path.dirname(str(getattr(torch, "__file__", None) or ""))
        ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        self._places = (os.path.dirname(folder), ours, sys.prefix, sys.base_prefix, os.path.expanduser("~"))
        self._send({"hello": {"release": release, "python": sys.version.split()[0], "pid": os.getpid()}})
        return True

    def _turn(self) -> bool:
        """Wait for something, handle it; False once the driver has gone."""
        poll = select.poll()
        owners = {descriptor: running for running in self._running.values() for descriptor in running.readers}
        for descriptor in (self._channel.fileno(), self._wake_read, *owners):
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(_TICK_S * 1000 if self._running else None)}
        for descriptor in ready & owners.keys():
            if not owners[descriptor].drain(descriptor):
                os.close(descriptor)
                del owners[descriptor].readers[descriptor]
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        self._watch()
        self._finish_ended()
        return self._channel.fileno() not in ready or self._receive()

    def _receive(self) -> bool:
        data = self._channel.recv(1 << 16)
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._answer(json.loads(line))
        return bool(data)

    def _answer(self, request: dict[str, Any]) -> None:
        if request["do"] == "prepare":
            self._preload(request)
            self._send(self._prepare(request["engine"], facts=request["facts"]))
        else:
            self._start(request)

    def _preload(self, request: dict[str, Any]) -> None:
        """Import what many cases import on their way; where that touches CUDA, begin anew as a server that does not."""
        if self._may_preload and not environment.preload():
            os.set_inheritable(self._channel.fileno(), True)
            os.execv(sys.executable, [*sys.orig_argv, json.dumps(request)])  # noqa: S606 - this very program

    def _prepare(self, engine: str, *, facts: bool) -> dict[str, Any]:
        """Settle which engine executes cases, and gather facts in a process of its own, so that CUDA stays untouched here."""
        gathered: dict[str, Any] = {}
        try:
            if engine == "auto" or facts:
                gathered = environment.gather_apart(engine)
                engine = "cuda" if "gpu" in gathered else "model"
        except environment.UnavailableError as error:
            return {"failed": str(error)}
        if engine == "model" and self._model is None:
            try:
                self._model = importlib.import_module("replaydrift.model")
                self._model.install(1.0)
                gathered |= environment.model_facts(self._model)
            except Exception as error:  # noqa: BLE001 - the driver says why the model does not work with this torch
                return {"failed": f"the CPU model cannot run: {error if type(error).__name__ == 'ModelRefused' else repr(error)}"}
        # Objects that exist now live as long as the server: left out of collections, their pages stay shared with every fork.
        gc.collect()
        gc.freeze()
        return {"prepared": {"engine": engine, "facts": gathered}}

    def _start(self, request: dict[str, Any]) -> None:
        task = Task(request["path"], request["function"], request["options"], request["scale"], request["overlaps"])
        running = Running(request["id"], task, request["limit_s"], request["memory_bytes"], self._scratch)
        close_first = [self._channel.fileno(), self._wake_read, self._wake_write]
        close_first += [descriptor for other in self._running.values() for descriptor in other.readers]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        running.start(self._model, close_first)
        self._running[running.pid] = running

    def _watch(self) -> None:
        """Hold every attempt to its time and its memory, and look for orphans now and then."""
        now = time.monotonic()
        table = processes.table() if self._running and now >= self._next_scan else None
        for pid, running in list(self._running.items()):
            running.watch(now)
            running.watch_memory(sum(map(processes.memory_bytes, {pid} if table is None else processes.family(pid, table))))
            if running.lost:
                del self._running[pid]
                self._report(running)
        if table is not None:
            self._orphans.kill_stray(self._running, table)
            self._next_scan = time.monotonic() + _SCAN_S

    def _reap(self) -> bool:
        """Take the exit status of whatever ended: attempts, and orphans that became ours. False where no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self._running:
                self._running[pid].status = status

    def _finish_ended(self) -> None:
        """Report every attempt that has ended. Between attempts nothing that they started is left alive."""
        children_left = self._reap()
        ended = [running for running in self._running.values() if running.status is not None]
        for running in ended:
            with suppress(OSError):
                os.killpg(running.pid, signal.SIGKILL)
            del self._running[running.pid]
            self._orphans.attempt_ended(running.pid)
        if ended and children_left and not self._running:
            self._orphans.kill_all()
        for running in ended:
            self._report(running)

    def _report(self, running: Running) -> None:
        running.close()
        self._send({"ended": running.number, "report": running.report(self._places)})

    def _send(self, message: dict[str, Any]) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self._channel.sendall(json.dumps(message).encode() + b"\n")


def main(descriptor: int, scratch: str, first: str | None = None) -> None:
    """Serve the driver at the other end of the socket with this number, attempts standing in folders below `scratch`.

    `first` is a request to answer at once, as JSON.
    """
    sys.argv = ["case"]
    sys.dont_write_bytecode = True
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    Server(channel, scratch, None if first is None else json.loads(first)).serve()
