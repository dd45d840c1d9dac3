"""Progress: plain lines in a pipe, a bar on a terminal, and a guess of the time left that follows from what ended."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import making
from rich.console import Console

from replaydrift.plan import Planned
from replaydrift.progress import LiveProgress, PlainProgress, TimeLeft


def planned(name: str, kind: str = "bug") -> Planned:
    """A planned case as progress sees it."""
    return cast("Planned", SimpleNamespace(case=SimpleNamespace(name=name, kind=kind)))


def walk(progress: Any) -> None:
    """Ten attempts, six of them done before; one goes wrong in another way than wished."""
    with progress:
        progress.doing("importing torch with [env]/bin/python")
        progress.begun(making.environment(), 6, 10)
        progress.attempted(7)
        progress.judged(planned("group/bug"), 1, making.attempt("wrong"))
        progress.attempted(8)
        progress.say("costs: [3/12] done")
        progress.judged(planned("group/fix", "fix"), 1, making.attempt("raised:RuntimeError: [bold]no[/bold]"))


def test_plain_lines() -> None:
    """Each event is one line without control codes: how many are done, the case, its verdict, why."""
    lines: list[str] = []
    walk(PlainProgress(lines.append))
    assert lines == [
        "importing torch with [env]/bin/python",
        "torch 2.13.0+cu130 on NVIDIA H200 (machine 'h200'): 10 attempts, 6 of them done before",
        "[ 7/10] group/bug #1: reproduced",
        "costs: [3/12] done",
        "[ 8/10] group/fix #1: raises (raised:RuntimeError: [bold]no[/bold])",
    ]


def test_a_bar_on_a_terminal() -> None:
    """What went other than wished stays in sight, texts of cases are no markup."""
    stream = io.StringIO()
    walk(LiveProgress(Console(file=stream, force_terminal=True, width=150, color_system=None)))
    assert "! group/fix #1: raises (raised:RuntimeError: [bold]no[/bold])" in stream.getvalue()
    assert "8/10" in stream.getvalue()
    assert "costs: [3/12] done" in stream.getvalue()


def test_time_left() -> None:
    """The rest takes as long as what ended since the start says; attempts from before do not count."""
    now = 100.0
    left = TimeLeft(clock=lambda: now)
    left.begin(10)
    now = 106.0
    assert left.text(12, 20) == ""
    assert left.text(13, 20) == "14 s left"
    assert left.text(13, 320) == "10 min left"
    assert left.text(20, 20) == ""
