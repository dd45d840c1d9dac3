"""What a workload costs: eager, capture, instantiation, first and steady replay, its nodes and its memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from replaydrift.measuring import capturing, cudart, gpu
from replaydrift.measuring.pace import beat_us
from replaydrift.measuring.planting import Plant, more_capture_time, more_gpu_work, more_host_time
from replaydrift.measuring.results import Measured
from replaydrift.measuring.timing import LEAST_SAMPLES, MOST_SAMPLES, Instruments, Stopwatch, in_turn
from replaydrift.measuring.watching import NO_KEEP_GRAPH, Watch, can_keep_graphs, watching
from replaydrift.measuring.workloads import Workload, workload


def count(name: str) -> Measured:
    """The exact counts of a workload, of one capture."""
    import torch

    work, stream = workload(name), torch.cuda.Stream()
    found = Measured(name, work.version)
    capturing.warm_up(work.step, stream)
    _count(found, work, stream)
    return found


def measure(name: str, plant: Plant, until_s: float) -> tuple[Measured, gpu.Reading | None]:
    """All costs of a workload, taken until about `until_s` on the host's clock, with the state that the GPU was in."""
    import torch

    work, stream = workload(name), torch.cuda.Stream()
    found = Measured(name, work.version)
    found.samples("warmup_ms", [capturing.warm_up(work.step, stream)])
    _count(found, work, stream)
    stopwatch = Stopwatch(Instruments.of_torch())
    step = more_gpu_work(work.step, plant.gpu, stopwatch, stream)
    recorded = more_capture_time(step, plant.host, stream)

    now = time.perf_counter()
    graph, _output = _captures(found, work, recorded, stream, stopwatch, now + (until_s - now) / 2)
    replay, eager = more_host_time(graph.replay, plant.host, stopwatch), more_host_time(step, plant.host, stopwatch)
    measures: dict[str, Callable[[], float]] = {
        "replay_gpu_us": stopwatch.gpu_us(replay),
        "replay_host_us": stopwatch.host_us(replay),
        "eager_gpu_us": stopwatch.gpu_us(eager),
        "eager_host_us": stopwatch.host_us(eager),
        "steady_pace_us": beat_us,
    }
    try:
        measures["bare_loop_gpu_us"] = stopwatch.gpu_us(cudart.launcher(graph))
    except cudart.NoRuntimeError as error:
        found.lacks["bare_loop_gpu_us"] = str(error)
    for metric, samples in in_turn(measures, until_s).items():
        found.samples(metric, samples)
    return found, under_load(graph.replay, stopwatch)


def under_load(work: Callable[[], object], stopwatch: Stopwatch) -> gpu.Reading | None:
    """The state of the GPU while it does some milliseconds of this work; None where it cannot be read, which spoils no cost."""
    import torch

    reading = None
    for _ in range(stopwatch.repeats_for(work)):
        work()
    with suppress(OSError, AttributeError, TypeError, ValueError, ctypes.ArgumentError):
        reading = gpu.read()
    torch.cuda.synchronize()
    return reading


def _captures(found: Measured, work: Workload, step: Callable[[], Any], stream: Any, stopwatch: Stopwatch, until_s: float) -> tuple[Any, Any]:
    """The last of several captures in one go, which can be replayed, and its output; each was a new graph with a pool of its own."""
    whole, parts, first_replays, beats = Watch(), Watch(apart=True), [], []
    apart = can_keep_graphs()
    graph = output = None
    for number in range(MOST_SAMPLES):
        if number >= LEAST_SAMPLES and time.perf_counter() >= until_s:
            break
        graph = output = None  # Gone before the next one is made, so that they never share the device's memory.
        if apart:
            capturing.warm_up(work.step, stream, steps=1)
            with watching(parts):
                graph, output = capturing.capture(step, stream)
            graph = output = None
        capturing.warm_up(work.step, stream, steps=1)
        with watching(whole):
            graph, output = capturing.capture(step, stream)
        first_replays.append(stopwatch.until_done_us(graph.replay))
        beats.append(beat_us())
    for metric, samples in (
        ("capture_ms", whole.capture_ms),
        ("record_ms", parts.record_ms),
        ("instantiate_ms", parts.instantiate_ms),
        ("first_replay_us", first_replays),
        ("capture_pace_us", beats),
    ):
        found.samples(metric, samples)
    return graph, output


def _count(found: Measured, work: Workload, stream: Any) -> None:
    """Note the counts of one capture of the workload, which is checked against eager code."""
    with watching(Watch(apart=can_keep_graphs())) as watch:
        graph, output = capturing.capture(work.step, stream)
    work.check(graph.replay, output)
    found.count("graphs", watch.captures)
    found.count("pool_bytes", capturing.pool_bytes(watch.graphs))
    found.count("moved_bytes", work.moved_bytes)
    if watch.apart and not watch.why_no_nodes:
        found.count("nodes", watch.nodes)
        return
    found.lacks["nodes"] = watch.why_no_nodes or NO_KEEP_GRAPH
    if not watch.apart:
        found.lacks |= dict.fromkeys(("record_ms", "instantiate_ms"), NO_KEEP_GRAPH)
