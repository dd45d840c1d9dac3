"""Advice on buckets for lengths of a person's own: the best list, what it costs, and how far the usual policies are from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from replaydrift.costs.optimal import Choice, best_of_each
from replaydrift.costs.policies import EAGER, PAD_TO_MAX, TOP_THREE, Padding, bucket_for, buckets_of, padding
from replaydrift.costs.steps import StepCost

# Without a price of a bucket there is no best number of them. Then it is the one after which one more saves less than this share.
WORTH: Final = 0.01
MOST: Final = 32
# Padding to the longest is fine where nine of ten requests are nearly that long: 1800 of 2048.
_NEAR, _MOSTLY = 1800 / 2048, 0.9


@dataclass(frozen=True)
class Prices:
    """What is known about costs, in the unit of `step`; None is "not known". `source` is a sentence that says where it is from."""

    source: str
    step: StepCost  # A replay for one request, at a bucket's size.
    eager: StepCost | None = None  # A request computed eagerly, at its own length.
    capture: StepCost | None = None  # Warm-up and capture of one bucket.
    pool_bytes: StepCost | None = None  # The private pool of one bucket.

    @property
    def timed(self) -> bool:
        """True where costs are times; else they are elements, and what is minimised is padding."""
        return self.step.unit != StepCost.elements().unit


@dataclass(frozen=True)
class Option:
    """A list of buckets for the lengths at hand, priced; a price that cannot be told is None."""

    policy: str
    buckets: tuple[int, ...]
    padding: Padding
    steps: float | None  # All requests, once.
    captures: float | None  # All buckets, once.
    own_pools_bytes: float | None
    shared_pool_bytes: float | None  # A lower bound: the largest bucket's pool, if the others fit into it.

    def total(self, repeats: int) -> float | None:
        """The requests, served so often, and the captures once; where the price of a capture is not known, without it."""
        return None if self.steps is None else self.steps * repeats + (self.captures or 0)


@dataclass(frozen=True)
class Advice:
    """The best list of buckets (`best`), the best of each number of them (`by_number`), and the usual policies (`others`)."""

    lengths: Mapping[int, int]
    repeats: int
    prices: Prices
    best: Option
    because: str
    by_number: tuple[Option, ...]
    others: tuple[Option, ...]

    @property
    def near_longest(self) -> bool:
        """True where nearly all requests are nearly as long as the longest, so that padding to it is fine."""
        near = sum(count for length, count in self.lengths.items() if length >= _NEAR * max(self.lengths))
        return near >= _MOSTLY * sum(self.lengths.values())

    def above_best(self, option: Option) -> float | None:
        """How much more than the best list this one costs, as a share of the best: 0.25 is a quarter more; None where it cannot be told."""
        mine, least = option.total(self.repeats), self.best.total(self.repeats)
        return None if mine is None or not least else mine / least - 1


def advise(
    lengths: Mapping[int, int],
    prices: Prices,
    *,
    number: int | None = None,
    most: int = MOST,
    repeats: int = 1,
    multiple_of: int = 1,
) -> Advice:
    """The advice for these lengths (how often each occurs), which are served `repeats` times before graphs are captured anew.

    `number` is the number of buckets; where it is None, that number up to `most` with the lowest total, or, where the price of a
    capture is not known, the smallest after which one more saves less than 1 % of the requests' cost. Sizes are multiples of
    `multiple_of`. TraceError where there is no length.
    """
    sizes = _sizes(lengths, prices, multiple_of)
    scaled = {length: count * repeats for length, count in lengths.items()}
    price = prices.capture.at if prices.capture else lambda _: 0
    choices = best_of_each(scaled, prices.step, number or most, price=price, sizes=sizes)
    by_number = tuple(_option(f"optimal-{len(choice.buckets)}", choice.buckets, lengths, prices) for choice in choices)
    place, because = _pick(choices, number, most, prices.capture is not None)
    best = by_number[place]
    usual = [PAD_TO_MAX, "powers-of-two", "serving-list", f"even-{len(best.buckets)}", f"quantile-{len(best.buckets)}"]
    usual += [EAGER, TOP_THREE] if prices.eager else []
    others = [_option(policy, buckets_of(policy, lengths), lengths, prices) for policy in dict.fromkeys(usual)]
    return Advice(lengths, repeats, prices, best, because, by_number, tuple(others))


def _sizes(lengths: Mapping[int, int], prices: Prices, multiple_of: int) -> set[int]:
    """The sizes among which the best list is to be found: the lengths, rounded up to multiples.

    Where a curve falls on its way, a larger size may be cheaper; then the multiples around the places where it bends are among them,
    since between two bends a straight line is lowest at an end.
    """
    sizes = {-(-length // multiple_of) * multiple_of for length in lengths}
    curves = [curve for curve in (prices.step, prices.capture) if curve is not None]
    if any(left > right for curve in curves for (_, left), (_, right) in pairwise(curve.points)):
        bends = {length for curve in curves for length, _ in curve.points}
        sizes |= {place // multiple_of * multiple_of for bend in bends for place in (bend, bend + multiple_of - 1)}
    return {size for size in sizes if size >= min(lengths)}


def _pick(choices: list[Choice], number: int | None, most: int, priced: bool) -> tuple[int, str]:
    """The place of the list to recommend, and why that one."""
    if number is not None:
        fewer = "" if len(choices) == number else f"; there are no more than {len(choices)} sizes"
        return len(choices) - 1, f"the number asked for{fewer}"
    if priced:
        place = min(range(len(choices)), key=lambda place: choices[place].cost)
        edge = f", the most that were tried: try more with --most {2 * most}" if place + 1 == most else ""
        return place, f"the number at which the requests and the captures together cost least{edge}"
    for place, (choice, following) in enumerate(pairwise(choices)):
        if choice.cost - following.cost < WORTH * choice.cost:
            return place, f"one more would save less than {WORTH:.0%}; what a bucket costs by itself is not known"
    reason = f"the most that were tried: try more with --most {2 * most}" if len(choices) == most else "one for each size there is"
    return len(choices) - 1, f"{reason}; what a bucket costs by itself is not known"


def _option(policy: str, buckets: tuple[int, ...], lengths: Mapping[int, int], prices: Prices) -> Option:
    pools = [prices.pool_bytes.at(bucket) for bucket in buckets] if prices.pool_bytes else None
    return Option(
        policy,
        buckets,
        padding(lengths, buckets),
        _steps(buckets, lengths, prices),
        sum(prices.capture.at(bucket) for bucket in buckets) if prices.capture else None,
        sum(pools) if pools is not None else None,
        max(pools, default=0) if pools is not None else None,
    )


def _steps(buckets: tuple[int, ...], lengths: Mapping[int, int], prices: Prices) -> float | None:
    total: float = 0
    for length, count in lengths.items():
        bucket = bucket_for(length, buckets)
        if bucket is not None:
            total += prices.step.at(bucket) * count
        elif prices.eager is not None:
            total += prices.eager.at(length) * count
        else:
            return None
    return total
