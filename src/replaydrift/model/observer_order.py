"""Which of two pieces of work is sure to come first: vector clocks over the streams and the host.

A stream's work comes after what the host knew when it was submitted, and after what the stream waited for. The host knows
what it waited for. All of the host's threads count as one, since what Python's own locks order is not seen. Assumed
durations play no part: two pieces of work without an order here may run in either.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import torch

HOST: Final = "host"
Thread = Hashable  # a stream's number, a side branch of a replayed graph, or the host
Clock = dict[Thread, int]


def merge(into: Clock, other: Clock) -> None:
    """Let `into` know all that `other` knows."""
    for thread, tick in other.items():
        if into.get(thread, 0) < tick:
            into[thread] = tick


class Order:
    """What each stream and the host know to be done."""

    def __init__(self) -> None:
        self._clocks: dict[Thread, Clock] = {HOST: {HOST: 0}}
        self._host_version = 0
        self._merged: dict[Thread, int] = {}
        self._backward = -1

    def host(self) -> Clock:
        """The host's clock, moved on by one for an access of its own."""
        clock = self._clocks[HOST]
        clock[HOST] += 1
        self._host_version += 1
        return clock

    def stream(self, stream: int) -> Clock:
        """The stream's clock, with all that the host knows; the caller moves it on."""
        clock = self._clocks.get(stream)
        if clock is None:
            clock = self._clocks[stream] = {}
        if self._merged.get(stream) != self._host_version:
            merge(clock, self._clocks[HOST])
            self._merged[stream] = self._host_version
        task = torch._C._current_graph_task_id()
        if task not in (-1, self._backward):
            # The engine orders a backward pass behind the streams of its forward pass by events of its own.
            self._backward = task
            for other in list(self._clocks):
                merge(clock, self._clocks[other])
        return clock

    def submit(self, stream: int) -> Clock:
        """The stream's clock, moved on by one for a piece of work."""
        clock = self.stream(stream)
        clock[stream] = clock.get(stream, 0) + 1
        return clock

    def moment(self, stream: int) -> Clock:
        """All that is done once the stream has done what it was given so far: what an event stands for."""
        return dict(self.stream(stream))

    def wait(self, stream: int, moment: Clock) -> None:
        """Let the stream wait for the moment."""
        merge(self.stream(stream), moment)

    def host_waits(self, moment: Clock) -> None:
        """Let the host wait for the moment."""
        merge(self._clocks[HOST], moment)
        self._host_version += 1

    def host_waits_for_stream(self, stream: int | None) -> None:
        """Let the host wait for the stream, or for all of them."""
        for other in [other for other in self._clocks if other != HOST] if stream is None else [stream]:
            if other in self._clocks:
                self.host_waits(self._clocks[other])

    def host_knows(self, thread: Thread, tick: int) -> bool:
        """True where the host has waited for that piece of work."""
        return self._clocks[HOST].get(thread, 0) >= tick
