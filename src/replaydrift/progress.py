"""Telling a person how a sweep goes: a moving bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from replaydrift.plan import Planned
from replaydrift.records import Attempt, Environment
from replaydrift.verdicts import GLYPHS, verdict

_AS_WISHED: Final = ("reproduced", "holds")


class TimeLeft:
    """How long the rest takes, if it goes on as it went since the start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._first = 0

    def begin(self, done: int) -> None:
        """Attempts begin, with so many done before."""
        self._begun, self._first = self._clock(), done

    def text(self, done: int, total: int) -> str:
        """`40 s left`, `3 min left`; nothing while too little has ended to tell."""
        fresh = done - self._first
        if fresh < 3 or done >= total:
            return ""
        seconds = (self._clock() - self._begun) / fresh * (total - done)
        return f"{seconds:.0f} s left" if seconds < 100 else f"{seconds / 60:.0f} min left"


class PlainProgress:
    """One line an event on stderr, without control codes: for a log, a pipe, a program."""

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self._say = say or (lambda line: click.echo(line, err=True))
        self._left = TimeLeft()
        self._done = self._total = 0

    def say(self, line: str) -> None:
        """Say something that stays."""
        self._say(line)

    def doing(self, what: str) -> None:
        """Say what has begun."""
        self._say(what)

    def begun(self, environment: Environment, done: int, total: int) -> None:
        """Say what runs where."""
        self._done, self._total = done, total
        self._left.begin(done)
        self._say(headline(environment, done, total))

    def attempted(self, done: int) -> None:
        """Count one more."""
        self._done = done

    def judged(self, planned: Planned, number: int, attempt: Attempt) -> None:
        """Say what the attempt came to."""
        word = verdict(planned.case.kind, attempt.outcome)
        left = self._left.text(self._done, self._total)
        width = len(str(self._total))
        line = f"[{self._done:{width}}/{self._total}] {planned.case.name} #{number}: {word}{_why(word, attempt)}"
        self._say(f"{line}  ({left})" if left else line)

    def __enter__(self) -> PlainProgress:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing to put away."""


class LiveProgress:
    """A bar on a terminal, with the case that ended last; what went other than wished stays above it."""

    def __init__(self, console: Console | None = None) -> None:
        self._bar = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._left = TimeLeft()
        self._task: TaskID | None = None
        self._total = 0

    def say(self, line: str) -> None:
        """Show something that stays, above the bar: what is written past the console would end up in the bar's own line."""
        self._bar.console.print(escape(line), highlight=False, soft_wrap=True)

    def doing(self, what: str) -> None:
        """Show what has begun."""
        self._show(escape(what))

    def begun(self, environment: Environment, done: int, total: int) -> None:
        """Show what runs where, and begin the bar."""
        self._left.begin(done)
        self._total = total
        self._bar.console.print(escape(headline(environment, done, total)), highlight=False)
        self._bar.update(self._show("attempts"), total=total, completed=done)

    def attempted(self, done: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.update(self._task, completed=done, left=self._left.text(done, self._total))

    def judged(self, planned: Planned, number: int, attempt: Attempt) -> None:
        """Show the case that ended, and keep it in sight where it went other than wished."""
        word = verdict(planned.case.kind, attempt.outcome)
        self._show(f"{GLYPHS[word]} {escape(planned.case.name)}")
        if word not in _AS_WISHED:
            text = f"{GLYPHS[word]} {planned.case.name} #{number}: {word}{_why(word, attempt)}"
            self._bar.console.print(escape(text), highlight=False, style="dim")

    def _show(self, description: str) -> TaskID:
        if self._task is None:
            self._task = self._bar.add_task(description, total=None, left="")
        else:
            self._bar.update(self._task, description=description)
        return self._task

    def __enter__(self) -> LiveProgress:  # noqa: PYI034 - Self came with Python 3.11
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()


def progress() -> PlainProgress | LiveProgress:
    """The bar where stderr is a terminal, else lines."""
    console = Console(stderr=True)
    return LiveProgress(console) if console.is_terminal and not console.is_dumb_terminal else PlainProgress()


def headline(environment: Environment, done: int, total: int) -> str:
    """What runs where, in one line."""
    where = "the CPU model" if environment.engine == "model" else environment.gpu
    before = f", {done} of them done before" if done else ""
    return f"torch {environment.release} on {where} (machine {environment.machine!r}): {total} attempts{before}"


def _why(word: str, attempt: Attempt) -> str:
    """The outcome where the verdict alone does not say enough."""
    return "" if attempt.outcome.detail is None or word in _AS_WISHED else f" ({attempt.outcome.text[:160]})"
