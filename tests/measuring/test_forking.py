"""Work in a process of its own: what it told is kept, and how it ended is known."""

from __future__ import annotations

import os
import signal
import time

from replaydrift.measuring.forking import Apart, Tell


def test_what_the_work_tells_comes_in_order() -> None:
    """A process that ends well has no bad ending."""

    def work(tell: Tell) -> None:
        for number in range(3):
            tell({"number": number})

    apart = Apart(work, 30.0)

    assert [message["number"] for message in apart] == [0, 1, 2]
    assert apart.ending.how == ""


def test_a_crash_is_named_and_what_came_before_is_kept() -> None:
    """The signal stands in the ending."""

    def work(tell: Tell) -> None:
        tell({"number": 1})
        os.kill(os.getpid(), signal.SIGKILL)

    apart = Apart(work, 30.0)

    assert [message["number"] for message in apart] == [1]
    assert apart.ending.how == "crashed: SIGKILL"


def test_work_that_raises_ends_with_exit_1(capfd) -> None:
    """Its traceback is on standard error."""

    def work(_tell: Tell) -> None:
        raise ValueError("no such thing")

    apart = Apart(work, 30.0)

    assert list(apart) == []
    assert apart.ending.how == "exit 1"
    assert "no such thing" in capfd.readouterr().err


def test_work_that_hangs_is_stopped_at_the_limit() -> None:
    """The limit stands in the ending."""
    apart, begun = Apart(lambda _tell: time.sleep(60), 0.3), time.monotonic()

    assert list(apart) == []
    assert apart.ending.how == "timed-out: 0.3 s"
    assert time.monotonic() - begun < 10


def test_work_is_killed_where_nobody_listens_any_more() -> None:
    """Leaving the loop ends the process."""

    def work(tell: Tell) -> None:
        tell({"pid": os.getpid()})
        time.sleep(60)

    messages = iter(Apart(work, 30.0))
    pid = next(messages)["pid"]
    messages.close()

    try:
        os.kill(pid, 0)
        alive = True
    except ProcessLookupError:
        alive = False
    assert not alive
