"""Which buckets are advised, and why that many; all prices in here are made up."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.costs.advice import Prices, advise
from replaydrift.costs.policies import bucket_for
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError

PADDING = Prices("nothing is known", StepCost.elements())
EVEN = dict.fromkeys(range(1, 101), 1)


def priced(capture: float, **more: StepCost) -> Prices:
    """A step costs 10 + its length; a bucket `capture`."""
    return Prices("made up", StepCost.linear(10, 1), capture=StepCost(((1, capture),)), **more)


def test_a_bucket_costs_what_it_saves() -> None:
    """Dear captures mean few buckets; the more requests come for one capture, the more buckets there are."""
    assert advise(EVEN, priced(1e6)).best.buckets == (100,)
    assert [len(advise(EVEN, priced(500), repeats=times).best.buckets) for times in (1, 4, 64)] == [3, 6, 25]


@given(st.dictionaries(st.integers(1, 200), st.integers(1, 30), min_size=1, max_size=20), st.floats(0, 1e4), st.integers(1, 5))
def test_nothing_beats_the_advised_list(lengths: dict[int, int], capture: float, repeats: int) -> None:
    """With all prices known no other number of buckets and none of the usual policies costs less."""
    advice = advise(lengths, priced(capture), repeats=repeats)
    for option in (*advice.by_number, *advice.others):
        above = advice.above_best(option)
        assert above is not None
        assert above >= -1e-9


def test_without_a_price_of_a_bucket() -> None:
    """Then one stops where one more bucket would save less than one in a hundred, and is told so."""
    advice = advise({100: 999, 199: 1, 200: 1}, PADDING)
    assert advice.best.buckets == (100, 200)
    assert advice.because == "one more would save less than 1%; what a bucket costs by itself is not known"
    assert advise({7: 3}, PADDING).because == "one for each size there is; what a bucket costs by itself is not known"
    assert "try more with --most 4" in advise(EVEN, PADDING, most=2).because
    assert "try more with --most 4" in advise(EVEN, priced(0), most=2).because


def test_a_number_asked_for() -> None:
    """It is kept to, as far as there are sizes."""
    assert advise(EVEN, PADDING, number=4).best.buckets == (25, 50, 75, 100)
    few = advise({3: 1, 9: 1}, PADDING, number=5)
    assert few.best.buckets == (3, 9)
    assert few.because == "the number asked for; there are no more than 2 sizes"


def test_multiples() -> None:
    """Sizes are rounded up to what a kernel likes."""
    best = advise(EVEN, PADDING, number=3, multiple_of=16).best
    assert all(bucket % 16 == 0 for bucket in best.buckets)
    assert best.buckets[-1] == 112


@given(
    st.dictionaries(st.integers(1, 14), st.integers(1, 5), min_size=1, max_size=4),
    st.dictionaries(st.integers(1, 16), st.integers(0, 40), min_size=1, max_size=5),
    st.integers(1, 2),
    st.integers(1, 3),
)
def test_no_size_at_all_is_better(lengths: dict[int, int], points: dict[int, int], number: int, multiple_of: int) -> None:
    """Also where a longer step is cheaper than a shorter one, no list of any sizes at all costs less than the best one found."""
    step = StepCost(tuple(points.items()))
    found = min(one.steps for one in advise(lengths, Prices("", step), number=number, multiple_of=multiple_of).by_number if one.steps is not None)
    allowed = [size for size in range(1, 25) if size % multiple_of == 0]
    # Beyond the last point a falling line goes on down to nothing, and no size is the best: what is measured is what counts.
    longest = max(*points, *(-(-length // multiple_of) * multiple_of for length in lengths))
    sizes = [size for size in allowed if size <= longest]
    for many in range(1, number + 1):
        for chosen in combinations(sizes, many):
            if chosen[-1] >= max(lengths):
                assert found <= sum(step.at(bucket_for(length, chosen) or 0) * count for length, count in lengths.items()) + 1e-9


def test_memory_with_own_pools_and_with_one() -> None:
    """A pool a bucket adds up; a shared one is as large as its largest bucket needs, at least."""
    best = advise(EVEN, priced(0, pool_bytes=StepCost.linear(0, 10, "bytes")), number=2).best
    assert best.buckets == (50, 100)
    assert (best.own_pools_bytes, best.shared_pool_bytes) == (1500, 1000)
    assert advise(EVEN, PADDING).best.own_pools_bytes is None


def test_eager_only_where_its_price_is_known() -> None:
    """Policies that leave requests to eager code are held against the best only where an eager step has a price."""
    assert not {"eager", "top-3-eager"} & {option.policy for option in advise(EVEN, priced(5)).others}
    advice = advise(EVEN, priced(5, eager=StepCost.linear(500, 0)))
    eager = next(option for option in advice.others if option.policy == "eager")
    assert (eager.steps, eager.captures, eager.buckets) == (50000, 0, ())
    assert next(option for option in advice.others if option.policy == "top-3-eager").padding.eager_requests == 5


def test_nearly_all_nearly_as_long() -> None:
    """Where nine of ten requests are within an eighth of the longest, padding to it is said to be fine."""
    assert advise({1800: 9, 10: 1, 2048: 1}, PADDING).near_longest
    assert not advise({1700: 9, 10: 1, 2048: 1}, PADDING).near_longest


def test_no_lengths() -> None:
    """There is no advice about nothing."""
    with pytest.raises(TraceError, match="at least one"):
        advise({}, PADDING)
