"""Timing with a clock and events that tests turn by hand: nothing here was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

import pytest

from replaydrift.measuring.timing import Instruments, Stopwatch, in_turn, rounded


@dataclass
class Machine:
    """A host and a GPU with a queue; work takes the host and the GPU so many microseconds."""

    host_us: float = 0.0
    gpu_us: float = 0.0
    event_us: float = 0.5
    waits: int = 0
    longest_backlog_us: float = 0.0
    calls: list[float] = field(default_factory=list)

    def work(self, host_us: float, gpu_us: float):
        """Work that the host launches in `host_us`, and that keeps the GPU busy for `gpu_us`."""

        def launch() -> None:
            self.calls.append(self.host_us)
            self.host_us += host_us
            self.gpu_us = max(self.gpu_us, self.host_us) + gpu_us
            self.longest_backlog_us = max(self.longest_backlog_us, self.gpu_us - self.host_us)

        return launch

    def wait(self) -> None:
        """Let the host wait for the GPU."""
        self.waits += 1
        self.host_us = max(self.host_us, self.gpu_us)

    def instruments(self) -> Instruments:
        """What a stopwatch needs, made of this machine."""
        return Instruments(lambda: _Event(self), self.wait, lambda: round(self.host_us * 1000))


class _Event:
    def __init__(self, machine: Machine) -> None:
        self._machine, self.at_us = machine, 0.0

    def record(self) -> None:
        self._machine.gpu_us = max(self._machine.gpu_us, self._machine.host_us) + self._machine.event_us
        self.at_us = self._machine.gpu_us

    def elapsed_time(self, end: _Event) -> float:
        return (end.at_us - self.at_us) / 1000


@pytest.mark.parametrize(("host_us", "gpu_us"), [(1.0, 10.0), (3.0, 100.0), (8.0, 1115.0), (900.0, 1115.0)])
def test_time_of_the_gpu_is_right_within_a_thousandth_where_the_gpu_is_the_slower(host_us: float, gpu_us: float) -> None:
    """The GPU never waits for a launch, however long that takes the host: it is busy with the lead when the first repeat comes."""
    machine = Machine()
    take = Stopwatch(machine.instruments()).gpu_us(machine.work(host_us, gpu_us))

    assert take() == pytest.approx(gpu_us, rel=0.001)


def test_without_a_lead_the_gpu_waits_for_the_first_launch() -> None:
    """What a lead is for: one launch of the host's is in the span without it."""
    machine = Machine()
    stopwatch, work = Stopwatch(machine.instruments()), machine.work(900.0, 3000.0)

    assert stopwatch.gpu_us(work, lead=False)() == pytest.approx(3900.0, rel=0.001)
    assert stopwatch.gpu_us(work)() == pytest.approx(3000.0, rel=0.001)


def test_one_slow_look_at_the_timer_does_not_lengthen_every_span() -> None:
    """The host may be taken away between two events: what the timer adds is the median of several looks."""
    machine = Machine()
    pauses = iter([5000.0, *[0.0] * 100])

    def event() -> _Event:
        machine.host_us += next(pauses)
        return _Event(machine)

    instruments = machine.instruments()

    assert Stopwatch(Instruments(event, instruments.wait, instruments.clock_ns)).overhead_us == pytest.approx(0.5)


def test_time_of_the_gpu_is_the_pace_of_the_host_where_the_host_is_the_slower() -> None:
    """A tiny kernel launched in a loop comes out at the rate of its launches."""
    machine = Machine()
    take = Stopwatch(machine.instruments()).gpu_us(machine.work(4.6, 1.0))

    assert take() == pytest.approx(4.6, rel=0.01)


@pytest.mark.parametrize("event_us", [0.1, 5.0, 50.0])
def test_a_span_is_long_enough_for_what_the_timer_adds(event_us: float) -> None:
    """Slower events are spread over more repeats: the span is a hundred times what an empty pair of them shows."""
    machine = Machine(event_us=event_us)
    stopwatch, work = Stopwatch(machine.instruments()), machine.work(1.0, 7.0)

    span = stopwatch.gpu_span_us(work, stopwatch.repeats_for(work))

    assert span >= 100 * event_us
    assert span >= 2000


def test_one_long_piece_of_work_is_not_repeated() -> None:
    """What takes longer than the span already is measured once a sample."""
    machine = Machine()

    assert Stopwatch(machine.instruments()).repeats_for(machine.work(10.0, 50_000.0)) == 1


@pytest.mark.parametrize("gpu_us", [1.0, 30.0, 1115.0])
def test_time_of_the_host_is_that_of_the_call_and_not_of_the_gpu(gpu_us: float) -> None:
    """A call that only queues takes the host the same, however long the GPU works on it."""
    machine = Machine()
    take = Stopwatch(machine.instruments()).host_us(machine.work(5.0, gpu_us))

    assert take() == pytest.approx(5.0)


def test_the_queue_of_launches_stays_short_while_the_host_is_measured() -> None:
    """Not more than about a millisecond of work waits for the GPU, so that no call has to wait for room."""
    machine = Machine()
    take = Stopwatch(machine.instruments()).host_us(machine.work(2.0, 200.0))
    machine.longest_backlog_us = 0.0
    take()

    assert 0 < machine.longest_backlog_us <= 1000


def test_time_until_done_is_that_of_host_and_gpu() -> None:
    """From an idle GPU to an idle GPU."""
    machine = Machine()

    assert Stopwatch(machine.instruments()).until_done_us(machine.work(5.0, 40.0)) == pytest.approx(45.0)


def test_measures_are_taken_in_turn_forwards_and_backwards() -> None:
    """Every second round goes backwards, so that a drift falls on all measures alike."""
    order: list[str] = []
    measures = {name: lambda name=name: float(order.append(name) or len(order)) for name in "abc"}

    samples = in_turn(measures, until_s=0.0, least=4, clock=lambda: 1.0)

    assert "".join(order) == "abccbaabccba"
    assert [len(taken) for taken in samples.values()] == [4, 4, 4]
    assert len({median(taken) for taken in samples.values()}) == 1, "a steady drift shifts no measure beside another"


def test_rounds_end_at_the_time_but_not_before_the_least_and_at_the_most() -> None:
    """Five rounds are taken however late it is, and fifteen are enough however early."""
    assert len(in_turn({"a": lambda: 1.0}, until_s=0.0, clock=lambda: 1.0)["a"]) == 5
    assert len(in_turn({"a": lambda: 1.0}, until_s=2.0, clock=lambda: 1.0)["a"]) == 15


def test_a_sample_keeps_six_digits() -> None:
    """Finer than any timer, and short enough for a file."""
    assert (rounded(1234.56789), rounded(0.00012345678)) == (1234.57, 0.000123457)
