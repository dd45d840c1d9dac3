"""One attempt, inside its own process: load the case's file, run the generator, report each thing at the moment it happens.

What was reported before a crash is kept, since every event is a line of JSON on a pipe of its own.
"""

from __future__ import annotations

import faulthandler
import inspect
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
import types
import unittest
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from replaydrift.child import processes
from replaydrift.child.capture_clock import CaptureClock
from replaydrift.child.encoding import NotStorableError, clean, encode_yield
from replaydrift.child.exceptions import chain_of, class_name, text_of

# The exit status of a process that could not report, so that it is not taken for a crash of the case.
NO_REPORT: Final = 120
# A context makes hardware queues for streams to overlap on, which takes the driver most of its time, one process after the other: on an
# H200 with eight attempts at once 5.6 attempts a second began with the usual number, and 12.9 with one queue.
QUEUES: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
MOST_YIELDS: Final = 10_000
MOST_WARNINGS: Final = 200
_LONGEST_WARNING: Final = 4096


@dataclass(frozen=True)
class Task:
    """What to run: a function of a file, with sizes; `scale` is for the CPU model alone and None on a GPU.

    What does not say that it `overlaps` gets one hardware queue, so that it begins sooner.
    """

    path: str
    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    scale: float | None = None
    overlaps: bool = True


class Reporter:
    """Writes events to the server. Copies that the case forks share the pipe and must not report again, so they do not."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._owner = os.getpid()
        self._lock = threading.RLock()  # Warnings may come from a thread of the case's.

    @property
    def is_copy(self) -> bool:
        """True in a process that the case forked."""
        return os.getpid() != self._owner

    def send(self, event: str, **content: Any) -> None:
        """Write one event whole."""
        if self.is_copy:
            return
        data = json.dumps({"event": event, **content}).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._pipe, data) :]


class WarningCounter:
    """Counts every Python warning by category and text, and reports each when it is first seen."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.counts: dict[tuple[str, str], int] = {}

    def install(self) -> None:
        """Take the place of the printer of warnings, with nothing filtered away and none shown only once."""
        warnings.resetwarnings()
        warnings.simplefilter("always")
        warnings.showwarning = self.take

    def take(self, message: Warning | str, category: type[Warning], *_place: Any, **_more: Any) -> None:
        """Count one warning."""
        name = category.__qualname__ if category.__module__ == "builtins" else f"{category.__module__}.{category.__qualname__}"
        key = (name, clean(str(message))[:_LONGEST_WARNING])
        if key not in self.counts:
            if len(self.counts) >= MOST_WARNINGS:
                return
            self._reporter.send("warning", category=key[0], text=key[1])
        self.counts[key] = self.counts.get(key, 0) + 1


def run(task: Task, pipe: int, model: Any) -> None:
    """Run the task and end this process: it never returns. `model` is the module of the CPU model, or None on a GPU."""
    _settle()
    if not task.overlaps:
        os.environ.setdefault(QUEUES, "1")
    reporter = Reporter(pipe)
    counter, clock = WarningCounter(reporter), CaptureClock()
    counter.install()
    clock.install()
    if model is not None and task.scale is not None:
        model.set_scale(task.scale, memory=True)
    started = time.perf_counter()
    # The generator is held until the process ends: what it allocated lives as long as its values were read.
    ending = _perform(task, reporter)
    duration_ms = (time.perf_counter() - started) * 1000
    if reporter.is_copy:
        os._exit(0)
    _flush()
    try:
        reporter.send(
            "end",
            **ending,
            duration_ms=round(duration_ms, 3),
            capture_ms=None if clock.total_ms is None else round(clock.total_ms, 3),
            counts=[[category, text, count] for (category, text), count in counter.counts.items()],
            rules=sorted(model.rules_used()) if model is not None else [],
        )
    except OSError:
        os._exit(NO_REPORT)
    os._exit(0)


def _settle() -> None:
    """Make this process an ordinary one: default signals, no core file, stack traces on a crash, no bytecode beside the cases."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    processes.offer_to_oom_killer()
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    faulthandler.enable(file=2, all_threads=False)
    # The server asks for the stack of an attempt that reached its time limit, just before it kills it.
    faulthandler.register(signal.SIGUSR2, file=2, all_threads=False)


def _perform(task: Task, reporter: Reporter) -> dict[str, Any]:
    """The content of the `end` event but for times and counts."""
    generator: Iterator[object] | None = None
    try:
        try:
            module = _load(task.path)
        except BaseException as error:  # noqa: BLE001 - whatever a file does while it loads is reported
            return _import_failed(error, task.path)
        generator = iter(_call(module, task))
        number = 0
        while (item := next(generator, _END)) is not _END:
            number += 1
            if number > MOST_YIELDS:
                return {"how": "broken", "detail": f"the case yielded more than {MOST_YIELDS} values: yield fewer"}
            step, value = encode_yield(item)
            # Held while the case goes on, a value would keep its block from being handed out again, and other addresses
            # would come out than in the case's own loop. A `for` over `enumerate` holds it too.
            del item
            reporter.send("value", step=step, value=value)
    except NotStorableError as error:
        return {"how": "broken", "detail": str(error)}
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of a case are what a user would see
        return _raised(error, task.path)
    finally:
        _KEPT.append(generator)
    return {"how": "finished"}


_KEPT: list[object] = []
_END: Final = object()


def _load(path: str) -> types.ModuleType:
    """The case's file as a module. Its folder is not put on the search path: a file named random.py must hide nothing."""
    name = os.path.basename(path).removesuffix(".py")
    module = types.ModuleType(name if name not in sys.modules else f"case_{name}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - running case files is the purpose
    return module


def _call(module: types.ModuleType, task: Task) -> Iterator[object]:
    function = getattr(module, task.function, None)
    if function is None:
        raise NotStorableError(f"{os.path.basename(task.path)} has no function {task.function!r} once it is loaded")
    accepted = inspect.signature(function).parameters
    result = function(**{name: value for name, value in task.options.items() if name in accepted})
    if not hasattr(result, "__next__"):
        raise NotStorableError(f"`{task.function}` returned a {type(result).__name__!r}: expected a generator that yields (step, value)")
    return result  # type: ignore[no-any-return]


def _import_failed(error: BaseException, path: str) -> dict[str, Any]:
    """A file that this torch cannot load, because a name of torch's is missing, raises; any other failure is the file's own."""
    missing = getattr(error, "name", None) or ""
    of_torch = isinstance(error, ImportError | AttributeError) and (missing.partition(".")[0] == "torch" or "torch" in text_of(error))
    if of_torch or isinstance(error, unittest.SkipTest):
        return _raised(error, path)
    line = text_of(error).strip().splitlines()
    reason = f"{os.path.basename(path)} does not import: {class_name(error)}: {line[0] if line else '(no text)'}"
    return {"how": "broken", "detail": reason, "chain": chain_of(error, path)}


def _raised(error: BaseException, path: str) -> dict[str, Any]:
    if isinstance(error, unittest.SkipTest):
        return {"how": "skipped", "detail": text_of(error).strip() or "(no reason given)"}
    return {"how": "raised", "chain": chain_of(error, path)}


def _flush() -> None:
    """Bring what the case printed to its pipe, even where it replaced or closed the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]


def fail_loudly() -> None:
    """End this process after an error of ours, with its traceback on stderr for the server to keep."""
    with suppress(BaseException):
        traceback.print_exc(file=sys.stderr)
        _flush()
    os._exit(NO_REPORT)
