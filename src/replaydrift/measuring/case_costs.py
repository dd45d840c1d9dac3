"""What a case costs: its captures, and the replay of all the graphs that it made, in a process in which nothing else of it runs.

A case is a generator. It is run several times to its end for the times of its captures, and once more up to its last yield, where it is
held: everything that it allocated then lives, and its graphs are replayed in the order of their captures. A case has no eager step: its
reference is another generator that reads values between its steps.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from replaydrift.child.exceptions import class_name
from replaydrift.measuring import capturing, gpu
from replaydrift.measuring.pace import beat_us
from replaydrift.measuring.results import Measured
from replaydrift.measuring.timing import MOST_SAMPLES, Instruments, Stopwatch, in_turn
from replaydrift.measuring.watching import NO_KEEP_GRAPH, Watch, can_keep_graphs, watching
from replaydrift.measuring.workload_costs import under_load

Case = dict[str, Any]  # of the request: name, path, function, version, options, scale
_MOST_YIELDS: Final = 10_000
_LEAST_RUNS: Final = 2


def count(case: Case) -> Measured:
    """The exact counts of a case on the CPU model, its tensors as large as the case's scale says."""
    model = importlib.import_module("replaydrift.model")
    model.set_scale(case["scale"], memory=True)
    try:
        return _counts(case)
    finally:
        model.set_scale(1.0)


def _counts(case: Case) -> Measured:
    found, start = _prepared(case)
    yields, first = _run(start, Watch())
    if first.captures == 0:
        found.count("graphs", 0)
        return found
    _count(found, start, yields, _why_not_apart(start))
    return found


def measure(case: Case, until_s: float) -> tuple[Measured, gpu.Reading | None]:
    """All costs of a case, taken until about `until_s` on the host's clock, with the state that the GPU was in.

    Where it captures nothing, that is all there is to know.
    """
    found, start = _prepared(case)
    yields, first = _run(start, Watch())  # Loads kernels; its times are not kept.
    if first.captures == 0:
        found.count("graphs", 0)
        return found, None
    why_not_apart = _why_not_apart(start)
    whole, parts, beats = _repeated(start, until_s, apart=not why_not_apart)
    found.samples("capture_ms", whole)
    found.samples("capture_pace_us", beats)
    found.samples("record_ms", [record for record, _ in parts])
    found.samples("instantiate_ms", [instantiate for _, instantiate in parts])
    graphs, held = _count(found, start, yields, why_not_apart)
    if not graphs:
        found.lacks |= dict.fromkeys(("replay_gpu_us", "replay_host_us"), "the case keeps none of its graphs until its end")
        return found, None

    def replay() -> None:
        for graph in graphs:
            graph.replay()

    stopwatch = Stopwatch(Instruments.of_torch())
    measures = {"replay_gpu_us": stopwatch.gpu_us(replay), "replay_host_us": stopwatch.host_us(replay), "steady_pace_us": beat_us}
    for metric, samples in in_turn(measures, until_s).items():
        found.samples(metric, samples)
    reading = under_load(replay, stopwatch)
    with suppress(Exception):  # All is measured: how the case ends early is no matter.
        held.close()
    return found, reading


def forget() -> None:
    """Leave the next case of this process what a new process has: no cached memory, no workspace of cuBLAS, no capture stream."""
    import torch

    gc.collect()
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


def _run(start: Callable[[], Iterator[object]], watch: Watch) -> tuple[int, Watch]:
    """The number of yields of the case, run to its end, and the watch over its captures; values are not read."""
    gc.collect()  # What an earlier run left must not be collected in a capture of this one: a graph that dies there spoils it.
    with watching(watch):
        number = sum(1 for _ in zip(start(), range(_MOST_YIELDS), strict=False))
    _settle()
    return number, watch


def _why_not_apart(start: Callable[[], Iterator[object]]) -> str:
    """Why the captures of the case cannot be taken apart; empty where they can. Some cases are about what keep_graph changes."""
    if not can_keep_graphs():
        return NO_KEEP_GRAPH
    try:
        _run(start, Watch(apart=True))
    except Exception as error:  # noqa: BLE001 - whatever the case raises then, it is no part of what it shows
        return f"the case raises {class_name(error)} where its graphs are made with keep_graph=True"
    return ""


def _hold(start: Callable[[], Iterator[object]], watch: Watch, yields: int) -> Any:
    """The case's generator, at its last yield."""
    gc.collect()
    generator = start()
    with watching(watch):
        for _ in range(yields):
            next(generator, None)
    _settle()
    return generator


def _settle() -> None:
    import torch

    torch.cuda.synchronize()


def _repeated(
    start: Callable[[], Iterator[object]], until_s: float, *, apart: bool
) -> tuple[list[float], list[tuple[float, float]], list[float]]:
    """For each of several runs the sum of its captures in milliseconds, for each of as many others that of their two parts, and the beats
    of the host's pace beside them.
    """
    whole, parts, beats = [], [], []
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
        beats.append(beat_us())
    return whole, parts, beats


def _count(found: Measured, start: Callable[[], Iterator[object]], yields: int, why_not_apart: str) -> tuple[list[Any], Any]:
    """Note the counts of one run of the case. The graphs that it still has at its last yield, and the case held there."""
    watch = Watch(apart=not why_not_apart)
    held = _hold(start, watch, yields)
    found.count("graphs", watch.captures)
    found.count("pool_bytes", capturing.pool_bytes(watch.graphs))
    if why_not_apart:
        found.lacks |= dict.fromkeys(("record_ms", "instantiate_ms"), why_not_apart)
    if why_not_apart or watch.why_no_nodes:
        found.lacks["nodes"] = why_not_apart or watch.why_no_nodes
    else:
        found.count("nodes", watch.nodes)
    return watch.graphs, held


with suppress(ImportError):
    import unittest.case  # noqa: F401 - imported before processes are forked, so that no case pays for it
