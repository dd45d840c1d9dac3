"""Cases that crash, hang, eat memory, fork, print or lie harm nothing but their own outcome."""

from __future__ import annotations

import time

import pytest
from toybox import environ, processes_named, run_toys

from replaydrift.records import Attempt
from replaydrift.store import Store


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attempt]:
    """Each hostile toy's attempt, by the name of its function; all ran in one sweep."""
    store = Store(tmp_path_factory.mktemp("hostile"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ().items():
            patch.setenv(name, value)
        swept = run_toys(store, "hostile", memory_bytes=400 * 2**20)
    stored = store.read(swept.environment.machine, swept.environment.release)
    assert {record.case for record in swept.records} == stored.cases.keys()
    return {name.split("/")[1]: record.attempts[0] for name, record in stored.cases.items()}


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("segfaults", "crashed:SIGSEGV"),
        ("hangs", "timed-out:0.7 s"),
        ("exits-0", "crashed:exit 0"),
        ("exits-3", "crashed:exit 3"),
        ("kills-itself", "crashed:SIGKILL"),
        ("forks", "correct"),
        ("forks-and-raises", "correct"),
        ("prints-much", "correct"),
        ("leaves-a-process", "correct"),
        ("leaves-a-daemon", "correct"),
        ("litters", "correct"),
        ("changes-streams", "correct"),
        ("system-exit", "raised:SystemExit: enough"),
        ("keyboard-interrupt", "raised:KeyboardInterrupt: (no text)"),
        ("unprintable", "raised:hostile.Unprintable: (unprintable: its __str__ raised ValueError)"),
        ("raises-itself", "raised:ValueError: first"),
    ],
)
def test_outcome(hostile: dict[str, Attempt], case: str, outcome: str) -> None:
    """What a case does to itself is its outcome, to the letter."""
    assert hostile[case].outcome.text == outcome


@pytest.mark.parametrize(
    ("case", "part"),
    [
        ("eats-memory", "took more memory than the 0.391 GiB an attempt may hold"),
        ("child-eats-memory", "took more memory than the 0.391 GiB an attempt may hold"),
        ("yields-nothing", "yielded nothing to compare: expected a step named warmup, capture or replay"),
        ("yields-evidence-only", "yielded nothing to compare"),
        ("yields-a-number", "yielded 3 of type 'int': expected a pair (step, value)"),
        ("yields-a-number-for-a-step", "yielded (3, 3) of type 'tuple': expected a pair (step, value)"),
        ("yields-an-unknown-step", "unknown step 'replays': write 'replay'"),
        ("yields-an-object", "expected None, bool, int, float"),
        ("yields-a-loop", "nested more than 32 deep"),
        ("yields-too-much", "found 70002 bytes, expected at most 65536 bytes"),
        ("yields-too-many-elements", "found 40000 elements, expected at most 65536 bytes"),
        ("yields-for-ever", "yielded more than 10000 values"),
        ("closes-everything", "it could not report: the case closed its descriptors"),
    ],
)
def test_broken_with_a_reason(hostile: dict[str, Attempt], case: str, part: str) -> None:
    """What cannot be judged is broken, and the reason says what was found and what was expected."""
    assert hostile[case].outcome.kind == "broken"
    assert part in (hostile[case].outcome.detail or "")


def test_values_before_a_crash_are_kept(hostile: dict[str, Attempt]) -> None:
    """What a case showed before it crashed stands in its strip, beside the reference's."""
    cell = hostile["segfaults"].strip[0]
    assert (cell.step, cell.observed, cell.correct) == ("warmup", 1, 1)


def test_a_crash_says_where(hostile: dict[str, Attempt]) -> None:
    """The stack of a crash and of a hang is on stderr, with the case's file and no folder of this machine."""
    for case, function in (("segfaults", "segfaults"), ("hangs", "hangs")):
        assert 'File "hostile.py", line ' in hostile[case].stderr
        assert f"in {function}" in hostile[case].stderr


def test_output_is_bounded(hostile: dict[str, Attempt]) -> None:
    """Of 50 MB a few KiB are kept: the beginning, a note of what is missing, the end."""
    attempt = hostile["prints-much"]
    for text, letter in ((attempt.stdout, "x"), (attempt.stderr, "y")):
        assert len(text) < 6000
        assert text.startswith(letter)
        assert " bytes left out …" in text
    assert attempt.stdout.endswith("the end\n")


def test_a_huge_text_is_bounded(hostile: dict[str, Attempt]) -> None:
    """An exception of 10 MB leaves a short outcome and a chain of a few KiB that says how much is missing."""
    attempt = hostile["huge-text"]
    assert len(attempt.outcome.text) < 500
    assert "characters left out" in attempt.chain[0].text
    assert len(attempt.chain[0].text) < 20_000


def test_nothing_is_left_running(hostile: dict[str, Attempt]) -> None:
    """Processes that cases started, with a session of their own or not, are gone."""
    give_up = time.monotonic() + 5
    while (left := processes_named("sleep 301.25") + processes_named("sleep 302.25")) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert left == []


def test_a_chain_that_bites_its_tail_ends(hostile: dict[str, Attempt]) -> None:
    """Each exception of a circular chain stands in it once."""
    assert [link.text for link in hostile["raises-itself"].chain] == ["first", "second"]
