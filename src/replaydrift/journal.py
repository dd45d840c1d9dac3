"""The journal of a sweep under way: one line an attempt, on disk before the next begins.

A sweep that was stopped or killed goes on from its journal; it has lost the attempts that were under way and nothing else. Once
the results are in the store the journal is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from replaydrift.errors import RunError
from replaydrift.store import JOURNAL_FILE

FILE_NAME: Final = JOURNAL_FILE
SCHEMA: Final = 1

Reports = dict[tuple[str, int], dict[str, Any]]


class Journal:
    """The open journal of one sweep, held by one process. `reports` has the report of each (task, attempt number) it holds."""

    def __init__(self, folder: Path, header: Mapping[str, Any], *, resume: bool = False, fresh: bool = False) -> None:
        """Open the folder's journal, or begin one. RunError where one is there and neither `resume` nor `fresh` says what to do
        with it, where its header does not fit, where another process holds it, and where it cannot be written.
        """
        self.path = folder / FILE_NAME
        self.header = {"schema": SCHEMA, **json.loads(json.dumps(header))}
        self.reports: Reports = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunError(
                f"cannot write in {str(folder)!r}: {error.strerror}; give the right to write there, "
                "or choose another folder with --results DIR",
            ) from error
        try:
            self._lock()
            self._take_up(resume=resume, fresh=fresh)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"another run is writing {str(self.path)!r}: wait for it, or choose another folder with --results DIR") from None

    def _take_up(self, *, resume: bool, fresh: bool) -> None:
        whole, complete = _whole_lines(self.path)
        if fresh or not whole:
            self._begin()
            return
        header, *lines = whole
        if not resume:
            raise RunError(
                f"{str(self.path)!r} holds {len(lines)} attempts of a sweep that did not end: go on with --resume, "
                "or discard them with --fresh",
            )
        differing = sorted(key for key in {*header, *self.header} if header.get(key) != self.header.get(key))
        if differing:
            raise RunError(
                f"{str(self.path)!r} is of a sweep that differs in {', '.join(differing)}{_example(header, self.header, differing[0])}: "
                "ask for the same as then with --resume, or discard it with --fresh",
            )
        os.ftruncate(self._descriptor, complete)
        self.reports = {(line["task"], line["attempt"]): line["report"] for line in lines}

    def _begin(self) -> None:
        os.ftruncate(self._descriptor, 0)
        self._append(self.header)

    def add(self, task: str, attempt: int, report: Mapping[str, Any]) -> None:
        """Keep one report; it is on disk when this returns. RunError where the disk is full; what was there stays."""
        self._append({"task": task, "attempt": attempt, "report": report})
        self.reports[task, attempt] = dict(report)

    def _append(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, sort_keys=True).encode() + b"\n"
        before = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise RunError(
                f"cannot write {str(self.path)!r}: {error.strerror}; the {len(self.reports)} attempts before are kept. "
                "Make room, then go on with --resume",
            ) from error

    def discard(self) -> None:
        """Remove the file: its content is in the store."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; it stays for `--resume`, unless it holds no attempt."""
        if not self.reports:
            self.discard()
        os.close(self._descriptor)
        for folder in (self.path.parent, self.path.parent.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()  # Only where it is empty.

    def __enter__(self) -> Journal:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _whole_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The lines that were written whole, and how many bytes they take: a kill may have cut off the last one."""
    lines: list[dict[str, Any]] = []
    complete = 0
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        try:
            if not line.endswith(b"\n"):
                break
            tree = json.loads(line)
        except ValueError as error:
            raise RunError(f"{str(path)!r} is damaged in line {number} ({error}): discard it with --fresh") from error
        wanted = {"schema"} if number == 1 else {"task", "attempt", "report"}
        if not isinstance(tree, dict) or not wanted <= tree.keys():
            raise RunError(f"{str(path)!r} is no journal of a sweep (line {number}): move it away, or discard it with --fresh")
        lines.append(tree)
        complete += len(line)
    return lines, complete


def _example(before: Mapping[str, Any], now: Mapping[str, Any], key: str) -> str:
    """A short ` (attempts: 3 then, 7 now)` where both sides are short enough to read; a mapping is shown by the entry that differs."""
    old, new = before.get(key), now.get(key)
    while isinstance(old, dict) and isinstance(new, dict):
        inner = next(name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
        key, old, new = f"{key}.{inner}", old.get(inner), new.get(inner)
    return f" ({key}: {str(old)[:60]} then, {str(new)[:60]} now)"
