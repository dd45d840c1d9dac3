"""No list of buckets is cheaper than the one found: every list is tried."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.costs.optimal import Choice, best_buckets, best_of_each
from replaydrift.costs.policies import bucket_for
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError

LENGTHS = st.dictionaries(st.integers(1, 40), st.integers(1, 9), min_size=1, max_size=7)
COSTS = st.dictionaries(st.integers(0, 48), st.integers(0, 60), min_size=1, max_size=5)


def total(counts: dict[int, int], buckets: tuple[int, ...], step: StepCost, prices: dict[int, int]) -> float:
    """What a list costs, summed request by request."""
    served = 0.0
    for length, count in counts.items():
        bucket = bucket_for(length, buckets)
        assert bucket is not None
        served += step.at(bucket) * count
    return served + sum(prices.get(bucket, 0) for bucket in buckets)


def cheapest(counts: dict[int, int], sizes: set[int], number: int, step: StepCost, prices: dict[int, int]) -> float:
    """The lowest cost of any list of this many sizes that holds the longest length."""
    lists = itertools.combinations(sorted(sizes), number)
    return min(total(counts, chosen, step, prices) for chosen in lists if chosen[-1] >= max(counts))


@given(LENGTHS, COSTS, st.integers(1, 8), st.dictionaries(st.integers(1, 40), st.integers(0, 90)))
def test_no_list_of_lengths_is_cheaper(counts: dict[int, int], points: dict[int, int], most: int, prices: dict[int, int]) -> None:
    """For each number of buckets the list found costs what the cheapest of all lists costs, whatever the shape of the curve."""
    step = StepCost(tuple(points.items()))
    found = best_of_each(counts, step, most, price=lambda size: prices.get(size, 0))
    assert [len(choice.buckets) for choice in found] == list(range(1, min(most, len(counts)) + 1))
    for choice in found:
        assert choice.cost == pytest.approx(total(counts, choice.buckets, step, prices), abs=1e-9)
        assert choice.cost == pytest.approx(cheapest(counts, set(counts), len(choice.buckets), step, prices), abs=1e-9)


@given(LENGTHS, COSTS, st.sets(st.integers(1, 48), max_size=6), st.integers(0, 8), st.integers(1, 4))
def test_no_list_of_other_sizes_is_cheaper(
    counts: dict[int, int], points: dict[int, int], sizes: set[int], beyond: int, most: int,
) -> None:  # fmt: skip
    """Sizes may be others than the lengths, such as multiples of 8, also more than one above the longest."""
    step, sizes = StepCost(tuple(points.items())), sizes | {max(counts) + beyond}
    for choice in best_of_each(counts, step, most, sizes=sizes):
        assert choice.cost == pytest.approx(cheapest(counts, sizes, len(choice.buckets), step, {}), abs=1e-9)
        assert set(choice.buckets) <= sizes


@given(LENGTHS, st.integers(1, 8))
def test_padding_is_minimised_exactly(counts: dict[int, int], most: int) -> None:
    """Without a clock the cost is a whole number, the elements computed; a bucket more never costs more."""
    found = best_of_each(counts, StepCost.elements(), most)
    assert all(isinstance(choice.cost, int) for choice in found)
    assert all(more.cost < fewer.cost for fewer, more in itertools.pairwise(found))
    assert found[0] == Choice((max(counts),), max(counts) * sum(counts.values()))
    if most >= len(counts):
        assert found[-1].cost == sum(length * count for length, count in counts.items())


def test_a_price_limits_the_number() -> None:
    """Where a bucket costs more than it saves, there are fewer of them than allowed."""
    counts = {10: 5, 20: 5}
    assert best_buckets(counts, StepCost.elements(), 2, price=lambda _: 49).buckets == (10, 20)
    assert best_buckets(counts, StepCost.elements(), 2, price=lambda _: 51).buckets == (20,)
    assert best_buckets(counts, StepCost.elements(), 2, price=lambda _: 50).buckets == (20,)


def test_many_lengths_take_seconds_at_most() -> None:
    """4096 distinct lengths and 32 buckets do not take the minutes that trying every pair would."""
    counts = Counter({length: 1 + length * 7919 % 97 for length in range(1, 4097)})
    begun = time.process_time()
    found = best_of_each(counts, StepCost.linear(3.7, 0.013), 32)
    assert time.process_time() - begun < 10
    assert len(found) == 32
    assert all(math.isfinite(choice.cost) for choice in found)


def test_what_cannot_be_chosen() -> None:
    """No lengths, no buckets, or no size for the longest length is refused with what was expected."""
    with pytest.raises(TraceError, match="at least one of each"):
        best_buckets({}, StepCost.elements(), 3)
    with pytest.raises(TraceError, match="at least one of each"):
        best_buckets({4: 1}, StepCost.elements(), 0)
    with pytest.raises(TraceError, match="no size holds the longest length, 9"):
        best_buckets({4: 1, 9: 1}, StepCost.elements(), 3, sizes=[8])
