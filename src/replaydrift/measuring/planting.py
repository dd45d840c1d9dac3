"""Slow-downs planted on purpose in a copy of a workload, to see whether they are found: more work for the GPU, or more host time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from replaydrift.measuring import capturing
from replaydrift.measuring.timing import Stopwatch
from replaydrift.measuring.watching import watching

_RULER: Final = 200  # kernels of the graph that says how long one takes
_ELEMENTS: Final = 256
_TRIES: Final = 5


@dataclass(frozen=True)
class Plant:
    """What is multiplied: the GPU's time of a step, the host's time of a call. 1.05 is five per cent more; 1 is nothing."""

    gpu: float = 1.0
    host: float = 1.0


class TinyKernels:
    """Kernels that each take about a microsecond, to be added to other work in the number that takes the time wanted."""

    def __init__(self, stopwatch: Stopwatch, stream: Any) -> None:
        import torch

        self._scratch = torch.zeros(_ELEMENTS, device="cuda")
        self.launch(1)
        self.one_us = replay_us(lambda: self.launch(_RULER), stopwatch, stream) / _RULER

    def launch(self, kernels: int) -> None:
        """Launch so many, one after the other."""
        for _ in range(kernels):
            self._scratch.add_(1.0)

    def number(self, microseconds: float) -> int:
        """How many take so long; at least one."""
        return max(1, round(microseconds / self.one_us))


def more_gpu_work(step: Callable[[], Any], factor: float, stopwatch: Stopwatch, stream: Any) -> Callable[[], Any]:
    """The step, followed by as many tiny kernels as make its replay take `factor` times as long: at least one.

    The step must have been warmed up. It keeps its result.
    """
    if factor <= 1:
        return step
    tiny = TinyKernels(stopwatch, stream)
    kernels = tiny.number((factor - 1) * replay_us(step, stopwatch, stream))

    def slower() -> Any:
        output = step()
        tiny.launch(kernels)
        return output

    return slower


def followed_by_work(work: Callable[[], object], factor: float, stopwatch: Stopwatch, stream: Any) -> Callable[[], object]:
    """The work, followed by the replay of a graph that makes the whole take the GPU `factor` times as long."""
    if factor <= 1:
        return work
    measure, tiny = stopwatch.gpu_us(work), TinyKernels(stopwatch, stream)
    kernels = tiny.number((factor - 1) * median(measure() for _ in range(_TRIES)))
    graph, _ = capturing.capture(lambda: tiny.launch(kernels), stream)
    kept = graph, tiny  # The graph goes on using the memory of what it was captured from.

    def slower() -> None:
        work()
        kept[0].replay()

    return slower


def more_host_time(call: Callable[[], Any], factor: float, stopwatch: Stopwatch) -> Callable[[], Any]:
    """The call, after which the host turns in place until the whole has taken `factor` times as long."""
    if factor <= 1:
        return call
    measure = stopwatch.host_us(call)
    return _then_spin(call, (factor - 1) * median(measure() for _ in range(_TRIES)) * 1000)


def more_capture_time(step: Callable[[], Any], factor: float, stream: Any) -> Callable[[], Any]:
    """The step, after which the host turns in place until its capture has taken `factor` times as long."""
    if factor <= 1:
        return step
    with watching() as watch:
        for _ in range(_TRIES):
            capturing.warm_up(step, stream, steps=1)
            capturing.capture(step, stream)
    return _then_spin(step, (factor - 1) * median(watch.capture_ms) * 1e6)


def _then_spin(call: Callable[[], Any], extra_ns: float) -> Callable[[], Any]:
    def slower() -> Any:
        output = call()
        until = time.perf_counter_ns() + extra_ns
        while time.perf_counter_ns() < until:
            pass
        return output

    return slower


def replay_us(step: Callable[[], Any], stopwatch: Stopwatch, stream: Any) -> float:
    """The GPU's time of a replay of the step, the median of a few samples."""
    graph, _output = capturing.capture(step, stream)
    measure = stopwatch.gpu_us(graph.replay)
    return median(measure() for _ in range(_TRIES))
