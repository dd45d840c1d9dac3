"""Which sizes each policy captures, and what padding to them wastes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.costs.lengths import TRACES, trace
from replaydrift.costs.policies import EAGER, MEASURED, bucket_for, buckets_of, padding
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError

LENGTHS = st.lists(st.integers(1, 3000), min_size=1, max_size=60)
HUNDRED = list(range(1, 101))


@pytest.mark.parametrize(
    ("policy", "buckets"),
    [
        ("eager", ()),
        ("pad-to-max", (100,)),
        ("even-4", (25, 50, 75, 100)),
        ("even-3", (34, 67, 100)),
        ("quantile-4", (25, 50, 75, 100)),
        ("powers-of-two", (1, 2, 4, 8, 16, 32, 64, 128)),
        ("serving-list", (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104)),
        ("top-3-eager", (32, 64, 95)),
        ("optimal-4", (25, 50, 75, 100)),
        ("optimal-1", (100,)),
    ],
)
def test_lengths_from_1_to_100(policy: str, buckets: tuple[int, ...]) -> None:
    """Each policy has the list one would write down by hand."""
    found = buckets_of(policy, HUNDRED)
    assert len(found) == len(buckets)
    assert padding(HUNDRED, found).padded_elements == padding(HUNDRED, buckets).padded_elements
    if not policy.startswith(("optimal", "top")):
        assert found == buckets


@given(LENGTHS, st.sampled_from(MEASURED))
def test_every_list_is_in_order_and_serves_everybody(lengths: list[int], policy: str) -> None:
    """Sizes ascend without repeats; no graph serves a request longer than it; only the policies that say so leave any to eager mode."""
    buckets = buckets_of(policy, lengths)
    assert list(buckets) == sorted(set(buckets))
    assert all(bucket is None or bucket >= length for length in lengths for bucket in [bucket_for(length, buckets)])
    done = padding(lengths, buckets)
    assert done.eager_requests + sum(done.requests.values()) == len(lengths)
    if policy == EAGER:
        assert (done.eager_requests, done.padded_elements) == (len(lengths), sum(lengths))
    elif policy == "top-3-eager":
        assert done.eager_requests <= 0.05 * len(lengths)
    else:
        assert done.eager_requests == 0


@given(LENGTHS, st.integers(1, 9))
def test_the_best_list_wastes_least(lengths: list[int], number: int) -> None:
    """No policy of as many buckets computes fewer elements than the optimal one."""
    best = padding(lengths, buckets_of(f"optimal-{number}", lengths))
    for policy in (f"even-{number}", f"quantile-{number}"):
        assert padding(lengths, buckets_of(policy, lengths)).padded_elements >= best.padded_elements


def test_the_best_list_follows_the_cost() -> None:
    """Where a long step costs out of proportion, its bucket is the one that is cut finely."""
    lengths = list(range(1, 9))
    steep = StepCost(((4, 0.0), (5, 10.0), (8, 1000.0)))
    assert buckets_of("optimal-4", lengths, steep) == (5, 6, 7, 8)


def test_waste_of_one_length() -> None:
    """128 of 2048: fifteen of sixteen elements are computed for nothing."""
    assert padding([128], [2048]).waste == 0.9375
    assert padding({100: 3, 200: 1}, [128]).requests == {128: 3}
    assert padding({100: 3, 200: 1}, [128]).padded_elements == 3 * 128 + 200


@pytest.mark.parametrize("policy", ["evens-4", "even-0", "even-", "even-1.5", "optimal", "best", ""])
def test_unknown_policies(policy: str) -> None:
    """The message lists the policies there are."""
    with pytest.raises(TraceError, match=r"expected one of eager, pad-to-max, .*optimal-K"):
        buckets_of(policy, [1])


def test_no_lengths() -> None:
    """There is no list of buckets for nothing."""
    with pytest.raises(TraceError, match="at least one"):
        buckets_of("even-4", [])


@pytest.mark.parametrize("name", TRACES)
def test_all_measured_policies_work_on_the_made_traces(name: str) -> None:
    """Every policy that is measured has a list for every trace that is measured, and the best eight waste least of those with eight."""
    lengths = trace(name)
    lists = {policy: buckets_of(policy, lengths) for policy in MEASURED}
    waste = {policy: padding(Counter(lengths), buckets).waste for policy, buckets in lists.items()}
    assert waste["optimal-8"] <= min(waste["even-8"], waste["quantile-8"])
    assert waste["optimal-8"] < waste["optimal-4"] < waste["pad-to-max"]
