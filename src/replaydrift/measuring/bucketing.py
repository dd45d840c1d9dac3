"""What policies of buckets cost over a trace of requests, and whether each request gets the result that eager code gives.

The policies of one trace are measured in turn, round by round, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from replaydrift.measuring import capturing, gpu, workloads
from replaydrift.measuring.pace import beat_us
from replaydrift.measuring.planting import Plant, followed_by_work
from replaydrift.measuring.results import Measured
from replaydrift.measuring.serving import Graphs, Requests, version
from replaydrift.measuring.timing import LEAST_SAMPLES, Instruments, Stopwatch, in_turn
from replaydrift.measuring.workload_costs import under_load

Wish = dict[str, Any]  # of the request: model, trace, name, policy, buckets, shared_pool
_LEAST_ROUNDS: Final = 3
_CAPTURE_TIME_S: Final = 0.05
_SERVED_BY_THE_MODEL: Final = 32
_NO_GRAPH: Final = "eager code captures nothing and copies nothing"


def subject(wish: Wish) -> str:
    """`bucketing/decoder/long-tailed/powers-of-two`."""
    return f"bucketing/{wish['model']}/{wish['name']}/{wish['policy']}"


def prepare(wish: Wish) -> tuple[Requests, Any]:
    """The requests of a trace, and a stream to capture on. All of it has run once, so that the first policy pays for nothing twice."""
    import torch

    requests, stream = Requests(workloads.model(wish["model"]), wish["trace"]), torch.cuda.Stream()
    longest = requests.lengths.index(max(requests.lengths))
    graphs = Graphs(requests, [requests.lengths[longest]], stream, shared=False)
    graphs.serve(longest)
    requests.eager(longest)
    torch.cuda.synchronize()
    return requests, stream


def count(wish: Wish, requests: Requests, stream: Any) -> tuple[Measured, float]:
    """The counts of a policy but for wrong results, and the milliseconds of its captures. Its graphs are gone again afterwards.

    Memory is counted from the same start for each policy: nothing of another one lives, and no result of any request.
    """
    found, buckets = (
        Measured(subject(wish), version(wish["model"], wish["buckets"], wish["trace"], shared=wish["shared_pool"])),
        wish["buckets"] or (),
    )
    own = Graphs(requests, buckets, stream, shared=False)
    found.count("own_pools_reserved_bytes", own.reserved_bytes)
    if wish["shared_pool"]:
        del own
        graphs = Graphs(requests, buckets, stream, shared=True)
        found.count("reserved_bytes", graphs.reserved_bytes)
    else:
        graphs = own
    found.count("graphs", len(graphs.graphs))
    found.count("pool_bytes", capturing.pool_bytes(graphs.graphs))
    found.count("buckets", len(graphs.buckets))
    found.count("real_elements", sum(requests.lengths))
    found.count("padded_elements", graphs.padded)
    return found, graphs.capture_ms


def count_all(wishes: Sequence[Wish], begin: Callable[[str], None]) -> list[Measured]:
    """The exact counts of several policies over one trace; `begin` is told whose turn it is.

    This is for the CPU model, on which a request takes milliseconds: only the first requests are served and compared.
    """
    requests, stream = prepare(wishes[0])
    every = []
    for wish in wishes:
        begin(subject(wish))
        every.append(count(wish, requests, stream)[0])
    for wish, found in zip(wishes, every, strict=True):
        begin(found.subject)
        graphs = Graphs(requests, wish["buckets"] or (), stream, shared=wish["shared_pool"])
        found.count("wrong_results", requests.wrong(graphs.serve, _SERVED_BY_THE_MODEL))
        del graphs
    return every


def measure_all(
    wishes: Sequence[Wish], plants: Mapping[str, Plant], until_s: float, begin: Callable[[str], None]
) -> tuple[list[Measured], gpu.Reading | None]:
    """All costs of several policies over one trace, taken until about `until_s`; `begin` is told which one is set up."""
    requests, stream = prepare(wishes[0])
    stopwatch = Stopwatch(Instruments.of_torch())
    counted = []
    for wish in wishes:
        begin(subject(wish))
        counted.append((*count(wish, requests, stream), beat_us()))
    every: list[tuple[Measured, Graphs]] = []
    takes: dict[tuple[str, str], Callable[[], float]] = {}
    for wish, (found, capture_ms, first_beat) in zip(wishes, counted, strict=True):
        begin(found.subject)
        captures, beats = [capture_ms], [first_beat]
        graphs = _captured_again(wish, requests, stream, captures, beats)
        found.count("wrong_results", requests.wrong(graphs.serve))
        if graphs.graphs:
            found.samples("trace_capture_ms", captures)
            found.samples("capture_pace_us", beats)
        else:
            found.lacks |= dict.fromkeys(("trace_capture_ms", "input_copy_ms", "output_clone_ms"), _NO_GRAPH)
        factor = plants.get(found.subject, Plant()).gpu
        for metric, work in _works(requests, graphs).items():
            slower = followed_by_work(work, factor, stopwatch, stream) if metric == "trace_gpu_ms" else work
            takes[found.subject, metric] = _in_ms(stopwatch.gpu_us(slower, lead=False))
        every.append((found, graphs))
    samples = in_turn(takes, until_s, least=_LEAST_ROUNDS)
    for found, _ in every:
        for metric in ("trace_gpu_ms", "input_copy_ms", "output_clone_ms"):
            found.samples(metric, samples.get((found.subject, metric), ()))
    return [found for found, _ in every], under_load(lambda: every[0][1].serve(0), stopwatch)


def _captured_again(wish: Wish, requests: Requests, stream: Any, captures: list[float], beats: list[float]) -> Graphs:
    """The graphs of a policy, ready to serve. To the milliseconds of its captures, and the beats beside them, it adds those of several
    more where they are soon done.
    """
    until = time.perf_counter() + _CAPTURE_TIME_S
    while True:
        graphs = Graphs(requests, wish["buckets"] or (), stream, shared=wish["shared_pool"])
        captures.append(graphs.capture_ms)
        beats.append(beat_us())
        if len(captures) >= LEAST_SAMPLES or time.perf_counter() >= until or not graphs.graphs:
            return graphs
        del graphs


def _works(requests: Requests, graphs: Graphs) -> dict[str, Callable[[], None]]:
    """What is timed of a policy, each over the whole trace; copies and clones by themselves where there are any."""
    served = graphs.served()

    def trace() -> None:
        for number in range(len(requests.lengths)):
            graphs.serve(number)

    def copies() -> None:
        for number, _ in served:
            graphs.put(number)

    def clones() -> None:
        for number, bucket in served:
            graphs.take(number, bucket)

    return {"trace_gpu_ms": trace, **({"input_copy_ms": copies, "output_clone_ms": clones} if served else {})}


def _in_ms(take_us: Callable[[], float]) -> Callable[[], float]:
    return lambda: take_us() / 1000
