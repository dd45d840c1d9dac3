"""What a case costs: its captures, and the replay of all the graphs that it made, in a process in which nothing else of it runs.

A case is a generator. It is run several times to its end for the times of its captures, and once more up to its last yield, where it is
held: everything that it allocated then lives, and its graphs are replayed in the order of their captures. A case has no eager step: its
reference is another generator that reads values between its steps.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from replaydrift.measuring import capturing, gpu
from replaydrift.measuring.results import Measured
from replaydrift.measuring.timing import MOST_SAMPLES, Instruments, Stopwatch, in_turn
from replaydrift.measuring.watching import NO_KEEP_GRAPH, Watch, can_keep_graphs, watching
from replaydrift.measuring.workload_costs import under_load

Case = dict[str, Any]  # of the request: name, path, function, version, options
_MOST_YIELDS: Final = 10_000
_LEAST_RUNS: Final = 3


def count(case: Case) -> Measured:
    """The exact counts of a case."""
    found, start = _prepared(case)
    watch = Watch(apart=can_keep_graphs())
    _note_counts(found, watch, _hold(start, watch, _run(start, Watch())))
    return found


def measure(case: Case, until_s: float) -> tuple[Measured, gpu.Reading | None]:
    """All costs of a case, taken until about `until_s` on the host's clock, with the state that the GPU was in.

    Where it captures nothing, that is all there is to know.
    """
    found, start = _prepared(case)
    first = Watch()
    yields = _run(start, first)  # Loads kernels; its times are not kept.
    apart = can_keep_graphs()
    if first.captures == 0:
        found.count("graphs", 0)
        return found, None
    whole, parts = _repeated(start, until_s, apart=apart)
    found.samples("capture_ms", whole)
    found.samples("record_ms", [record for record, _ in parts])
    found.samples("instantiate_ms", [instantiate for _, instantiate in parts])
    counted = Watch(apart=apart)
    held = _hold(start, counted, yields)
    _note_counts(found, counted, held)
    graphs = counted.graphs
    if not graphs:
        found.lacks |= dict.fromkeys(("replay_gpu_us", "replay_host_us"), "the case keeps none of its graphs until its end")
        return found, None

    def replay() -> None:
        for graph in graphs:
            graph.replay()

    stopwatch = Stopwatch(Instruments.of_torch())
    measures = {"replay_gpu_us": stopwatch.gpu_us(replay), "replay_host_us": stopwatch.host_us(replay)}
    for metric, samples in in_turn(measures, until_s).items():
        found.samples(metric, samples)
    reading = under_load(replay, stopwatch)
    with suppress(Exception):  # All is measured: how the case ends early is no matter.
        held.close()
    return found, reading


def forget() -> None:
    """Leave the next case of this process what a new process has: no cached memory, no workspace of cuBLAS, no capture stream."""
    import torch

    torch.cuda.graph.default_capture_stream = None
    capturing.start_afresh()


def _prepared(case: Case) -> tuple[Measured, Callable[[], Iterator[object]]]:
    """An empty result, and what starts the case's generator anew."""
    path = Path(case["path"])
    spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(path)!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, case["function"])
    accepted = inspect.signature(function).parameters
    options = {name: value for name, value in case["options"].items() if name in accepted}
    return Measured(case["name"], case["version"]), lambda: iter(function(**options))


def _run(start: Callable[[], Iterator[object]], watch: Watch) -> int:
    """The number of yields of the case, run to its end; values are not read."""
    with watching(watch):
        number = sum(1 for _ in zip(start(), range(_MOST_YIELDS), strict=False))
    _settle()
    return number


def _hold(start: Callable[[], Iterator[object]], watch: Watch, yields: int) -> Any:
    """The case's generator, at its last yield."""
    generator = start()
    with watching(watch):
        for _ in range(yields):
            next(generator)
    _settle()
    return generator


def _settle() -> None:
    import torch

    torch.cuda.synchronize()


def _repeated(start: Callable[[], Iterator[object]], until_s: float, *, apart: bool) -> tuple[list[float], list[tuple[float, float]]]:
    """For each of several runs the sum of its captures in milliseconds, and for each of as many others that of their two parts."""
    whole, parts = [], []
    middle = time.perf_counter() + (until_s - time.perf_counter()) / 2
    for number in range(MOST_SAMPLES):
        if number >= _LEAST_RUNS and time.perf_counter() >= middle:
            break
        watch = Watch()
        _run(start, watch)
        whole.append(sum(watch.capture_ms))
        if apart:
            watch = Watch(apart=True)
            _run(start, watch)
            parts.append((sum(watch.record_ms), sum(watch.instantiate_ms)))
    return whole, parts


def _note_counts(found: Measured, watch: Watch, _held: object) -> None:
    """The counts of what the watch saw; the pools are those of the graphs that still live."""
    found.count("graphs", watch.captures)
    if watch.captures == 0:
        return
    found.count("pool_bytes", capturing.pool_bytes(watch.graphs))
    if watch.apart and not watch.why_no_nodes:
        found.count("nodes", watch.nodes)
    else:
        found.lacks["nodes"] = watch.why_no_nodes or NO_KEEP_GRAPH
    if not watch.apart:
        found.lacks |= dict.fromkeys(("record_ms", "instantiate_ms"), NO_KEEP_GRAPH)


with suppress(ImportError):
    import unittest.case  # noqa: F401 - imported before processes are forked, so that no case pays for it
