"""Serving a trace of requests by the graphs of a policy of buckets.

A request is so many positions of a fixed input. It goes to the smallest bucket that holds it: it is copied into the static input, whose tail
keeps what an earlier request left there, the bucket's graph is replayed, and the part of the output that belongs to it is cloned. A
request that fits no bucket runs eagerly, and so does every request where there are no buckets.
"""

from __future__ import annotations

import ast
import hashlib
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from replaydrift.case_version import code_version
from replaydrift.measuring import capturing, workloads

_TOLERANCE: Final = 1e-3


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


def version(model: str, buckets: Sequence[int] | None, trace: Sequence[int], *, shared: bool) -> str:
    """Twelve hex digits over the network's code, the code of this file, the trace, the buckets, and how pools are shared."""
    known = (_own_version(), workloads.version_of(model), list(trace), None if buckets is None else list(buckets), shared)
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12]


@cache
def _own_version() -> str:
    source = Path(__file__).read_text(encoding="utf-8")
    return code_version(source, ast.parse(source), ["Requests", "Graphs"])
