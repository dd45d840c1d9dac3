"""What a policy of buckets costs over a trace of requests, and whether each request gets the result that eager code gives.

A request is so many positions of a fixed input. It goes to the smallest bucket that holds it: it is copied into the static input, whose tail
keeps what an earlier request left there, the bucket's graph is replayed, and the part of the output that belongs to it is cloned. A
request that fits no bucket runs eagerly, and so does every request where there are no buckets. The policies of one trace are measured in
turn, round by round.
"""

from __future__ import annotations

import ast
import hashlib
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from replaydrift.case_version import code_version
from replaydrift.measuring import capturing, gpu, workloads
from replaydrift.measuring.planting import Plant, followed_by_work
from replaydrift.measuring.results import Measured
from replaydrift.measuring.timing import LEAST_SAMPLES, Instruments, Stopwatch, in_turn
from replaydrift.measuring.workload_costs import under_load

Wish = dict[str, Any]  # of the request: model, trace, name, policy, buckets, shared_pool
_LEAST_ROUNDS: Final = 3
_CAPTURE_TIME_S: Final = 0.05
_SERVED_BY_THE_MODEL: Final = 32
_TOLERANCE: Final = 1e-3
_NO_GRAPH: Final = "eager code captures nothing and copies nothing"


class Requests:
    """The requests of a trace: their lengths, their inputs, and what eager code makes of each."""

    def __init__(self, network: workloads.Model, lengths: Sequence[int]) -> None:
        import torch

        self.network, self.lengths = network, tuple(lengths)
        source = workloads.random_input(max(lengths) + len(lengths), network.size)
        self.inputs = [source[number : number + length] for number, length in enumerate(lengths)]
        self._lengths = {length: torch.full((1,), length, device="cuda") for length in set(lengths)}
        self._right: dict[int, tuple[Any, Any]] = {}

    def length(self, number: int) -> Any:
        """The length of a request as a tensor on the GPU."""
        return self._lengths[self.lengths[number]]

    def eager(self, number: int) -> tuple[Any, Any]:
        """What eager code makes of a request now."""
        return self.network.run(self.inputs[number], self.length(number))

    def wrong(self, serve: Callable[[int], tuple[Any, Any]], most: int | None = None) -> int:
        """How many requests, the first `most` or all, served in the order of the trace, get another result than from eager code."""
        import torch

        lengths = self.lengths[:most]
        everyone = range(len(lengths))
        if len(lengths) not in self._right:
            self._right[len(lengths)] = _joined(self.eager(number) for number in everyone)
        right, served = self._right[len(lengths)], _joined(serve(number) for number in everyone)
        alike = [torch.isclose(*pair, rtol=_TOLERANCE, atol=_TOLERANCE).all(1).tolist() for pair in zip(served, right, strict=True)]
        ends = list(accumulate(lengths))
        return sum(not (alike[1][number] and all(alike[0][end - lengths[number] : end])) for number, end in enumerate(ends))


def _joined(results: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The hidden states of all requests one after the other, and their means, a row each."""
    import torch

    hidden, means = zip(*results, strict=True)
    return torch.cat(hidden), torch.stack(means)


class Graphs:
    """The captured graphs of a policy, one a bucket, largest first; either all in one pool, or each in its own."""

    def __init__(self, requests: Requests, buckets: Sequence[int], stream: Any, *, shared: bool) -> None:
        import torch

        capturing.start_afresh()
        before, begun = torch.cuda.memory_reserved(), time.perf_counter()
        self.buckets = sorted(set(buckets))
        self._requests = requests
        self._captured: dict[int, tuple[Any, Any]] = {}
        self._static = torch.zeros(max(self.buckets, default=0), requests.network.size, device="cuda")
        self._length = torch.ones(1, dtype=torch.int64, device="cuda")
        pool = torch.cuda.graph_pool_handle() if shared else None
        for bucket in reversed(self.buckets):
            step = self._step(bucket)
            capturing.warm_up(step, stream, steps=1)  # The kernels have been loaded, and libraries have what they allocate once.
            self._captured[bucket] = capturing.capture(step, stream, pool)
        torch.cuda.synchronize()
        self.capture_ms = (time.perf_counter() - begun) * 1000
        torch.cuda.empty_cache()
        self.reserved_bytes = torch.cuda.memory_reserved() - before if self.buckets else 0

    def _step(self, bucket: int) -> Callable[[], Any]:
        hidden, length, run = self._static[:bucket], self._length, self._requests.network.run
        return lambda: run(hidden, length)

    @property
    def graphs(self) -> list[Any]:
        """The graphs, in the order of their captures."""
        return [graph for graph, _ in self._captured.values()]

    @property
    def padded(self) -> int:
        """The positions that are computed for the whole trace, padding included."""
        return sum(self.bucket_of(length) or length for length in self._requests.lengths)

    def bucket_of(self, length: int) -> int | None:
        """The smallest bucket that holds so many positions; None where there is none."""
        place = bisect_left(self.buckets, length)
        return self.buckets[place] if place < len(self.buckets) else None

    def put(self, number: int) -> None:
        """Copy a request into the static input; the tail keeps what was there."""
        hidden = self._requests.inputs[number]
        self._static[: hidden.shape[0]].copy_(hidden)
        self._length.copy_(self._requests.length(number))

    def take(self, number: int, bucket: int) -> tuple[Any, Any]:
        """Clones of what belongs to a request in the output of a bucket."""
        hidden, mean = self._captured[bucket][1]
        return hidden[: self._requests.lengths[number]].clone(), mean.clone()

    def serve(self, number: int) -> tuple[Any, Any]:
        """The result of one request."""
        bucket = self.bucket_of(self._requests.lengths[number])
        if bucket is None:
            return self._requests.eager(number)
        self.put(number)
        self._captured[bucket][0].replay()
        return self.take(number, bucket)

    def served(self) -> list[tuple[int, int]]:
        """The requests that a graph serves, each with its bucket."""
        found = ((number, self.bucket_of(length)) for number, length in enumerate(self._requests.lengths))
        return [(number, bucket) for number, bucket in found if bucket is not None]


def subject(wish: Wish) -> str:
    """`bucketing/decoder/long-tailed/powers-of-two`."""
    return f"bucketing/{wish['model']}/{wish['name']}/{wish['policy']}"


def version(wish: Wish) -> str:
    """Twelve hex digits over the network's code, the code of this file that serves, the trace and the buckets."""
    known = (_own_version(), workloads.version_of(wish["model"]), wish["trace"], wish["buckets"], wish["shared_pool"])
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12]


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
    found, buckets = Measured(subject(wish), version(wish)), wish["buckets"] or ()
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
        counted.append(count(wish, requests, stream))
    every: list[tuple[Measured, Graphs]] = []
    takes: dict[tuple[str, str], Callable[[], float]] = {}
    for wish, (found, capture_ms) in zip(wishes, counted, strict=True):
        begin(found.subject)
        graphs, captures = _captured_again(wish, requests, stream, capture_ms)
        found.count("wrong_results", requests.wrong(graphs.serve))
        if graphs.graphs:
            found.samples("trace_capture_ms", captures)
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


def _captured_again(wish: Wish, requests: Requests, stream: Any, first_ms: float) -> tuple[Graphs, list[float]]:
    """The graphs of a policy, ready to serve, and the milliseconds of all captures: more where they are soon done."""
    captures = [first_ms]
    until = time.perf_counter() + _CAPTURE_TIME_S
    while True:
        graphs = Graphs(requests, wish["buckets"] or (), stream, shared=wish["shared_pool"])
        captures.append(graphs.capture_ms)
        if len(captures) >= LEAST_SAMPLES or time.perf_counter() >= until or not graphs.graphs:
            return graphs, captures
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


@lru_cache(maxsize=1)
def _own_version() -> str:
    source = Path(__file__).read_text(encoding="utf-8")
    return code_version(source, ast.parse(source), ["Requests", "Graphs", "_works"])
