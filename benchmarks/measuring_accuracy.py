"""Whether what is reported is the graph, and not the harness: run it on a GPU, with the Python of a release.

    PYTHONPATH=src python benchmarks/measuring_accuracy.py

Prints, for graphs of 1 and of 1,000 kernels, `replay_gpu_us` as it is measured, the same graph launched by a bare loop of cudaGraphLaunch, and
a bare loop of `replay()` by the host's clock, each the median of samples taken in turn. Targets: 0.5 % of the loop of cudaGraphLaunch at 1,000
kernels, 5 % of the loop of `replay()` at 1. Then the physical floors: the bandwidth that a large copy reaches and, of each workload, its bytes over
that bandwidth and its nodes at the pace of a long chain, beside its replay. Exit code 1 where a target is missed.
"""

# ruff: noqa: PLC0415 - asv imports every file of this folder to look for benchmarks, so imports wait until this one runs.

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

TARGETS = {1000: ("cudaGraphLaunch", 0.005), 1: ("replay()", 0.05)}
WORKLOADS = ("chain/1", "chain/100", "chain/1000", "mlp/256", "decoder/128")
COPIED_BYTES = 2**30


def main() -> None:
    """Measure and print."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("there is no GPU here: this compares its times")
    from replaydrift.measuring.timing import Instruments, Stopwatch

    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    stopwatch, missed = Stopwatch(Instruments.of_torch()), False
    for kernels, (other, most) in TARGETS.items():
        found = three_ways(kernels, stopwatch)
        off = found["replay_gpu_us"] / found[other] - 1
        missed |= abs(off) > most
        listed = ", ".join(f"{name} {value:.2f} µs" for name, value in found.items())
        print(f"{kernels} kernels: {listed}; {off:+.2%} against {other} (target {most:.1%})")
    floors(stopwatch)
    sys.exit(missed)


def three_ways(kernels: int, stopwatch) -> dict[str, float]:
    """Microseconds of a replay of one graph, measured in three ways in turn."""
    import torch

    from replaydrift.measuring import capturing, cudart
    from replaydrift.measuring.timing import in_turn
    from replaydrift.measuring.workloads import workload

    work, stream = workload(f"chain/{kernels}"), torch.cuda.Stream()
    capturing.warm_up(work.step, stream)
    graph, _output = capturing.capture(work.step, stream)
    repeats = stopwatch.repeats_for(graph.replay)
    measures = {
        "replay_gpu_us": stopwatch.gpu_us(graph.replay),
        "cudaGraphLaunch": stopwatch.gpu_us(cudart.launcher(graph)),
        "replay()": lambda: bare_loop_us(graph.replay, repeats),
    }
    return {name: median(samples) for name, samples in in_turn(measures, time.perf_counter() + 5).items()}


def bare_loop_us(call: Callable[[], object], repeats: int) -> float:
    """Microseconds a call, by the host's clock around a loop and the wait for its end, with nothing else."""
    import torch

    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(repeats):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) * 1e6 / repeats


def bytes_a_us(stopwatch) -> float:
    """The bandwidth of a large copy, what is read and what is written counted, in bytes a microsecond."""
    import torch

    source = torch.empty(COPIED_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copy = stopwatch.gpu_us(lambda: target.copy_(source))
    return 2 * COPIED_BYTES / median(copy() for _ in range(5))


def floors(stopwatch) -> None:
    """Print what bandwidth and launches alone would take, beside what a replay takes."""
    import torch

    from replaydrift.measuring import capturing
    from replaydrift.measuring.watching import Watch, can_keep_graphs, watching
    from replaydrift.measuring.workloads import workload

    bandwidth = bytes_a_us(stopwatch)
    print(f"a copy of {COPIED_BYTES / 2**30:g} GiB moves {bandwidth / 1e6:.2f} TB/s")
    pace = three_ways(1000, stopwatch)["replay_gpu_us"] / 1000
    print(f"a chain of 1,000 kernels takes {pace:.2f} µs a kernel")
    for name in WORKLOADS:
        work, stream = workload(name), torch.cuda.Stream()
        capturing.warm_up(work.step, stream)
        with watching(Watch(apart=can_keep_graphs())) as watch:
            graph, _output = capturing.capture(work.step, stream)
        replay = stopwatch.gpu_us(graph.replay)
        taken = median(replay() for _ in range(5))
        print(f"{name}: {taken:.2f} µs a replay; bytes {work.moved_bytes / bandwidth:.2f} µs, {watch.nodes} nodes {watch.nodes * pace:.2f} µs")


if __name__ == "__main__":
    main()
