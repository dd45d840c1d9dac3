"""Virtual time: streams as queues, and the order in which queued work runs.

The start of a piece of work is known when it is submitted: once the host has come so far, its stream is free, and what it
waits for has ended. So one heap ordered by that time is the whole simulation. Work happens at once, at its start (a copy to
the host at its end, since that is when the host may see it). No threads, no wall clock: the same program, the same order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import torch

Work = Callable[[], None]
DEFAULT_STREAM: Final = 0


@dataclass
class Clock:
    """Times in microseconds since the model was installed. `now` is the host's."""

    now: float = 0.0
    free_at: dict[int, float] = field(default_factory=dict)
    _heap: list[tuple[float, int, Work]] = field(default_factory=list)
    _count: int = 0

    def idle(self, stream: int) -> bool:
        """True where work for this stream would start at once. What other streams wait for starts later: `tick` ran the rest."""
        return self.free_at.get(stream, 0.0) <= self.now

    @property
    def busy(self) -> bool:
        """True while any stream has something left to do."""
        return max(self.free_at.values(), default=0.0) > self.now

    def occupy(self, stream: int, duration: float) -> None:
        """Account for work that the caller has just run on an idle stream."""
        self.free_at[stream] = self.now + duration

    def submit(self, stream: int, duration: float, work: Work, *, at_end: bool = False, after: float = 0.0) -> float:
        """Queue work and return when it ends; `after` is a further time before which it cannot start."""
        start = max(self.now, self.free_at.get(stream, 0.0), after)
        end = start + duration
        self.free_at[stream] = end
        self.push(end if at_end else start, work)
        return end

    def push(self, when: float, work: Work) -> None:
        """Queue work for a time that the caller worked out: the nodes of a replay."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, work))

    def wait(self, stream: int, until: float) -> None:
        """Let nothing more start on the stream before that time."""
        self.free_at[stream] = max(self.free_at.get(stream, 0.0), until)

    def reached(self, stream: int) -> float:
        """When all that is queued on the stream so far will have ended; now at the earliest."""
        return max(self.now, self.free_at.get(stream, 0.0))

    def tick(self, microseconds: float) -> None:
        """Let host time pass, and run what starts meanwhile."""
        self.now += microseconds
        if self._heap:
            self.pump()

    def pump(self) -> None:
        """Run everything that starts until now, beneath autograd, autocast and the model's own dispatch."""
        heap = self._heap
        if not heap or heap[0][0] > self.now:
            return
        with torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
            while heap and heap[0][0] <= self.now:
                heapq.heappop(heap)[2]()

    def catch_up(self, until: float) -> None:
        """Let the host wait until that time."""
        self.now = max(self.now, until)
        self.pump()

    def drain(self) -> None:
        """Let the host wait for the whole device."""
        self.catch_up(max(self.free_at.values(), default=0.0))


CLOCK = Clock()
