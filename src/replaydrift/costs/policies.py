"""Bucket policies: which sizes a program captures a graph for, given the lengths it sees, and what padding to them wastes.

A request is served by the smallest bucket that holds it, and is computed eagerly where none does. So a policy is a list of sizes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from replaydrift.costs.optimal import best_buckets
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError

Lengths = Iterable[int] | Mapping[int, int]  # Each request's length, or how often each length occurs.
Buckets = tuple[int, ...]

EAGER, PAD_TO_MAX, TOP_THREE = "eager", "pad-to-max", "top-3-eager"
# What the table of costs measures, with few buckets and with many; `optimal-4` needs to know what a step costs.
MEASURED: Final = (
    EAGER, PAD_TO_MAX, "even-4", "quantile-4", "even-8", "quantile-8", "powers-of-two", "serving-list", TOP_THREE, "optimal-4", "optimal-8",
)  # fmt: skip
_COVERED: Final = 0.95  # The share of requests that `top-3-eager` has graphs for.


def buckets_of(policy: str, lengths: Lengths, cost: StepCost | None = None) -> Buckets:
    """The sizes that the policy captures for these lengths, ascending, each once; none for `eager`.

    `eager`; `pad-to-max`; `even-K`, K equal parts of the longest; `quantile-K`, K buckets of about as many requests each; `powers-of-two`;
    `serving-list`, the fine list of sizes that serving engines use; `top-3-eager`, three buckets for the shorter 95 % of
    requests, the others eagerly; `optimal-K`, the K sizes with the lowest sum of `cost` (padded elements where there is none).
    TraceError where there is no such policy, or no length.
    """
    counts = Counter(lengths)
    if not counts:
        raise TraceError(f"no lengths to find the buckets of {policy!r} for: expected at least one")
    if policy in _PLAIN:
        return _PLAIN[policy](counts)
    kind, _, number = policy.rpartition("-")
    if not number.isdecimal() or int(number) < 1 or kind not in {"even", "quantile", "optimal"}:
        known = ", ".join((*_PLAIN, "even-K", "quantile-K", "optimal-K"))
        raise TraceError(f"there is no bucket policy {policy!r}: expected one of {known}, where K is a number of buckets, such as even-4")
    if kind == "optimal":
        return best_buckets(counts, cost or StepCost.elements(), int(number)).buckets
    return (_even if kind == "even" else _quantiles)(counts, int(number))


def bucket_for(length: int, buckets: Sequence[int]) -> int | None:
    """The smallest bucket that holds the length; None where it is computed eagerly."""
    place = bisect_left(buckets, length)
    return buckets[place] if place < len(buckets) else None


@dataclass(frozen=True, slots=True)
class Padding:
    """What a list of buckets does to lengths, in elements of length: exact counts."""

    requests: Mapping[int, int]  # By bucket, in ascending order; a bucket that serves none has 0.
    eager_requests: int
    real_elements: int  # Asked for, of all requests.
    padded_elements: int  # Computed, padding included: an eager request computes its own length.

    @property
    def waste(self) -> float:
        """Padded minus real over padded: the share of the computed elements that nobody asked for, from 0 to below 1."""
        return (self.padded_elements - self.real_elements) / self.padded_elements


def padding(lengths: Lengths, buckets: Sequence[int]) -> Padding:
    """What these buckets (ascending) do to these lengths."""
    requests = dict.fromkeys(buckets, 0)
    eager = real = padded = 0
    for length, count in Counter(lengths).items():
        bucket = bucket_for(length, buckets)
        if bucket is None:
            eager += count
        else:
            requests[bucket] += count
        real += length * count
        padded += (length if bucket is None else bucket) * count
    return Padding(requests, eager, real, padded)


def _even(counts: Counter[int], number: int) -> Buckets:
    longest = max(counts)
    return tuple(sorted({-(-longest * part // number) for part in range(1, number + 1)}))


def _quantiles(counts: Counter[int], number: int) -> Buckets:
    """The length below which each part of the requests lies; equal lengths fall into one bucket, so there may be fewer."""
    total, seen, sizes = counts.total(), 0, set()
    for length in sorted(counts):
        before, seen = seen, seen + counts[length]
        if seen * number // total > before * number // total:
            sizes.add(length)
    return tuple(sorted(sizes))


def _powers_of_two(counts: Counter[int]) -> Buckets:
    return tuple(2**power for power in range((min(counts) - 1).bit_length(), (max(counts) - 1).bit_length() + 1))


def _serving_list(counts: Counter[int]) -> Buckets:
    """1, 2, 4, multiples of 8 to 256, multiples of 16 from there on, up to the first that holds the longest."""
    longest, sizes = max(counts), [1, 2, 4]
    while sizes[-1] < longest:
        sizes.append(sizes[-1] + (4 if sizes[-1] == 4 else 8 if sizes[-1] < 256 else 16))
    return tuple(sizes[: bisect_left(sizes, longest) + 1])


def _top_three(counts: Counter[int]) -> Buckets:
    within: Counter[int] = Counter()
    for length in sorted(counts):
        within[length] = counts[length]
        if within.total() >= _COVERED * counts.total():
            break
    return best_buckets(within, StepCost.elements(), 3).buckets


_PLAIN: Final[Mapping[str, Callable[[Counter[int]], Buckets]]] = {
    EAGER: lambda _: (),
    PAD_TO_MAX: lambda counts: (max(counts),),
    "powers-of-two": _powers_of_two,
    "serving-list": _serving_list,
    TOP_THREE: _top_three,
}
