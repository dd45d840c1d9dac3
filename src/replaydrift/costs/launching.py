"""One visit's process: started with any Python, told what to measure, and heard line by line until it ends.

The process runs `replaydrift.measuring` beside torch. It gets one JSON request on its standard input and answers with a line of
JSON a subject, then `end`; what it prints otherwise is on standard error, and is told only where it ended badly.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final

from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import Subject, subject_from_json
from replaydrift.errors import RunError
from replaydrift.launch import LOADING, PACKAGE, interpreter

# Importing torch from a cold network file system takes minutes at worst, and one subject never takes as long.
SILENCE_LIMIT_S: Final = 600.0
_TICK_S: Final = 0.2
_GRACE_S: Final = 10.0
_DIGITS: Final = 6  # Of a sample: finer than any clock.
# A visit that outlived its driver would disturb those that come after it.
_BOOTSTRAP: Final = f"""{LOADING}
import runpy
from replaydrift.child.processes import die_with_parent
die_with_parent(int(sys.argv[2]))
runpy.run_module("replaydrift.measuring", run_name="__main__", alter_sys=True)
"""


class StoppedError(Exception):
    """A person stopped the block while this visit was under way."""


class VisitFailedError(Exception):
    """The process ended without its last line, or said what nobody can read; the text says how, `heard` what it had measured."""

    def __init__(self, text: str, heard: Heard) -> None:
        super().__init__(text)
        self.heard = heard


@dataclass
class Heard:
    """What the process of a visit has said: its subjects, and at its end the clock, temperature and throttling of the GPU."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttled: tuple[str, ...] = ()
    release: str | None = None
    ended: bool = False


def listen(
    python: str, request: Mapping[str, Any], *, told: Callable[[str], None], stopped: Callable[[], bool], silence_s: float = SILENCE_LIMIT_S,
) -> Heard:  # fmt: skip
    """All that one process measures. `told` hears each subject's name as it ends; `stopped` is asked a few times a second.

    RunError where it cannot be started, VisitFailedError where it ends badly, StoppedError once `stopped` says so.
    """
    heard = Heard()
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as log:
        asked.write(json.dumps(request).encode() + b"\n")
        asked.seek(0)
        try:
            process = subprocess.Popen(
                [interpreter(python), "-c", _BOOTSTRAP, str(PACKAGE), str(os.getpid())],
                stdin=asked,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal is for the driver alone.
            )
        except OSError as error:
            raise RunError(f"cannot start {python!r}: {error.strerror or error}; name a Python with --python PATH") from error
        try:
            for line in _lines(process, stopped, silence_s, heard):
                name = _take(line, request["engine"], heard)
                if name is not None:
                    told(name)
            if not heard.ended:
                raise VisitFailedError(_how_it_ended(process, log), heard)
        finally:
            _end(process, _GRACE_S if heard.ended else 0)
    return heard


def _lines(process: subprocess.Popen[bytes], stopped: Callable[[], bool], silence_s: float, heard: Heard) -> Iterator[bytes]:
    """The lines that the process writes, until it closes its output or has said its last one."""
    assert process.stdout is not None
    descriptor, waiting, give_up = process.stdout.fileno(), b"", time.monotonic() + silence_s
    while not heard.ended:
        if stopped():
            raise StoppedError
        if time.monotonic() > give_up:
            raise VisitFailedError(f"said nothing for {silence_s:g} s after {_last(heard)}", heard)
        if not select.select([descriptor], [], [], _TICK_S)[0]:
            continue
        data = os.read(descriptor, 1 << 20)
        if not data:
            return
        *lines, waiting = (waiting + data).split(b"\n")
        give_up = time.monotonic() + silence_s
        for line in lines:
            if line.strip():
                yield line


def _last(heard: Heard) -> str:
    return repr(next(reversed(heard.subjects))) if heard.subjects else "it was started"


def _take(line: bytes, engine: str, heard: Heard) -> str | None:
    """The name of the subject that the line tells of; None where it is the last line."""
    try:
        said = json.loads(line)
        if "end" in said:
            end = said["end"]
            heard.sm_clock_mhz, heard.temperature_c = end.get("sm_clock_mhz"), end.get("temperature_c")
            heard.throttled = tuple(str(reason) for reason in end.get("throttled") or ())
            heard.release = ((end.get("environment") or {}).get("torch") or {}).get("version")
            heard.ended = True
            return None
        name = str(said["subject"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = line[:80].decode("utf-8", "replace")
        raise VisitFailedError(f"said {text!r}, which tells of no subject ({type(error).__name__})", heard) from error
    heard.subjects[name] = subject_of(said, engine)
    return name


def subject_of(said: Mapping[str, Any], engine: str) -> Subject:
    """The subject that a line tells of, samples to six digits.

    Of the CPU model only what is counted is taken. A metric without a row in the table, or a sample that is no number, is a failure.
    """
    version = str(said.get("version", ""))
    if "failed" in said:
        return Subject(version, failed=str(said["failed"])[:1000] or "no reason was given")
    try:
        subject = subject_from_json({"version": version, "metrics": said["metrics"], "lacks": said.get("lacks") or {}})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Subject(version, failed=f"what was measured cannot be stored: {error!r}")
    unknown = sorted(subject.metrics.keys() - METRICS.keys())
    if unknown:
        return Subject(version, failed=f"what was measured cannot be stored: the table of metrics has no {unknown[0]!r}")
    return Subject(
        version,
        {
            name: tuple(_rounded(sample) for sample in samples)
            for name, samples in subject.metrics.items()
            if engine != "model" or METRICS[name].exact
        },
        subject.lacks,
    )


def _rounded(sample: float) -> float:
    return sample if isinstance(sample, int) else float(f"{sample:.{_DIGITS}g}")


def _how_it_ended(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    try:
        code = process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        return "closed its output without an end"
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code} before its last line"
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return f"{how} ({lines[-1].strip()[:300]})" if lines else how


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """The process and all that it started are gone; one that has said everything gets a moment to leave by itself."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
