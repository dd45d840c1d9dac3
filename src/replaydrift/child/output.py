"""What a process prints: bounded to its beginning and end, with the warnings of C++ taken out of stderr."""

from __future__ import annotations

import re
from typing import Final

HEAD_BYTES: Final = 3 * 1024
TAIL_BYTES: Final = 1024
MOST_WARNINGS: Final = 200
_LONGEST_LINE: Final = 16 * 1024
_MOST_LINES: Final = 40

# `[W1130 22:31:53.123456789 CUDAGraph.cpp:12] Warning: text (function name)`; older releases have no date and time.
_WARNING: Final = re.compile(r"^\[W\d{0,4}\s*(?:\d\d:\d\d:\d\d(?:\.\d+)?\s*)?\S+:\d+\]\s*(?:Warning:\s*)?(?P<text>.*)$", re.DOTALL)
_FUNCTION: Final = re.compile(r"\s*\(function [^()]*(?:\(\))?[^()]*\)\s*$")


class HeadTail:
    """The first and the last bytes of a stream of any length; memory stays bounded."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._total += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]

    def text(self) -> str:
        """All of it where it is short, else its beginning and end with a note of what is missing between."""
        missing = self._total - len(self._head) - len(self._tail)
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        if missing <= 0:
            return (self._head + self._tail).decode("utf-8", "replace")
        return f"{head}\n… {missing} bytes left out …\n{tail}"


class StderrReader:
    """Stderr without the warnings that torch's C++ wrote to it; those are counted by their text."""

    def __init__(self) -> None:
        self.rest = HeadTail()
        self.warnings: dict[str, int] = {}
        self._line = b""
        self._open: list[bytes] = []  # the lines of a warning whose closing `(function …)` has not come yet

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        lines = (self._line + data).split(b"\n")
        self._line = lines.pop()
        if len(self._line) > _LONGEST_LINE:
            lines.append(self._line)
            self._line = b""
        plain: list[bytes] = []
        for line in lines:
            if self._open or line.startswith(b"[W"):
                self.rest.feed(b"".join(plain))
                plain.clear()
                self._take(line)
            else:
                plain.append(line + b"\n")
        self.rest.feed(b"".join(plain))

    def finish(self) -> None:
        """Take what came without a line break at the end."""
        if self._line:
            line, self._line = self._line, b""
            if self._open or line.startswith(b"[W"):
                self._take(line)
            else:
                self.rest.feed(line)
        self._close()

    def _take(self, line: bytes) -> None:
        if line.startswith(b"[W"):
            self._close()
        self._open.append(line)
        if (line.rstrip().endswith(b")") and b"(function " in line) or len(self._open) >= _MOST_LINES:
            self._close()

    def _close(self) -> None:
        """Count the warning at hand. Without a `(function …)` only its first line is known to belong to it."""
        lines, self._open = self._open, []
        if not lines:
            return
        whole = b"\n".join(lines).decode("utf-8", "replace")
        if not _FUNCTION.search(whole):
            self.rest.feed(b"".join(line + b"\n" for line in lines[1:]))
            whole = lines[0].decode("utf-8", "replace")
        match = _WARNING.match(whole)
        if match is None:
            self.rest.feed(whole.encode() + b"\n")
            return
        text = _FUNCTION.sub("", match["text"]).strip()
        if text in self.warnings or len(self.warnings) < MOST_WARNINGS:
            self.warnings[text] = self.warnings.get(text, 0) + 1
