"""The statistics of costs: what each test gives, and in seeded simulations how often it is wrong and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from replaydrift.costs import statistics
from replaydrift.costs.statistics import ALPHA, compare, holm, p_changed, per_test, smallest_change

HEADLINES = 60
LEVEL = per_test(ALPHA, HEADLINES)


def side(*medians: float) -> list[float]:
    """One number a process."""
    return list(medians)


# One side of six processes with half a percent of noise.
OLD = side(100.0, 100.6, 99.5, 100.2, 99.8, 100.4)
NOISE = {
    "normal": lambda draw, shape: draw.normal(0, 0.01, shape),
    "heavy tails": lambda draw, shape: 0.01 * draw.standard_t(3, shape),
    "slow starters": lambda draw, shape: 0.1 * draw.exponential(1, shape),
    "two modes": lambda draw, shape: 0.04 * (draw.random(shape) < 0.3) + draw.normal(0, 0.005, shape),
    "two sharp modes": lambda draw, shape: 0.04 * (draw.random(shape) < 0.5) + draw.normal(0, 0.001, shape),
}


def any_alarm(noise: str, processes: int, rounds: int = 2000) -> float:
    """The share of rounds in which Holm's gate over 60 metrics without a change and without margins calls any change."""
    draw = np.random.default_rng(11)
    shape = (rounds, HEADLINES, processes)
    more, less = p_changed(NOISE[noise](draw, shape), NOISE[noise](draw, shape), 0.0, statistics.chosen_test(processes))
    return float(np.mean(holm(np.minimum(1, 2 * np.minimum(more, less))).min(axis=-1) <= ALPHA))


def test_welch_is_scipys() -> None:
    """Both one-sided p-values and the interval are those of scipy's own Welch test on log medians, shifted by the margin."""
    new = [value * 1.02 for value in side(100.1, 99.7, 100.9, 100.0, 100.3)]
    found = compare(OLD, new, 0.01, "welch")
    before, after = np.log(OLD), np.log(new)
    grown = stats.ttest_ind(after - np.log(1.01), before, equal_var=False, alternative="greater")
    shrunk = stats.ttest_ind(after + np.log(1.01), before, equal_var=False, alternative="less")
    interval = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert (found.p_more, found.p_less) == pytest.approx((grown.pvalue, shrunk.pvalue))
    assert (found.low, found.high) == pytest.approx((np.exp(interval.low), np.exp(interval.high)))


def test_ranks_are_exact() -> None:
    """Eight processes that all lie above eight others have p = 1 / C(16, 8); where all tie with the others there is no change."""
    old = side(1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7)
    found = compare(old, [value + 1 for value in old], test="rank")
    assert found.p_more == pytest.approx(1 / 12870)
    assert found.direction == "more"
    tied = compare([1.0] * 8, [1.0] * 8, test="rank")
    assert tied.p_more > 0.9
    assert tied.p_less > 0.9


def test_the_test_is_chosen_by_processes_alone() -> None:
    """Six or seven processes a side are compared by Welch's test, eight or more by ranks; looking at the data plays no part."""
    assert statistics.chosen_test(6, 12) == "welch"
    assert statistics.chosen_test(8, 9) == "rank"


def test_a_change_within_the_margin_is_none() -> None:
    """Two percent more is a change with a margin of one percent, and none with a margin of three: then it is the same."""
    new = [value * 1.02 for value in OLD]
    assert compare(OLD, new, 0.01).p < 0.01
    wide = compare(OLD, new, 0.03)
    assert wide.p > 0.5
    assert wide.p_outside < 0.01


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_less_is_the_mirror_of_more(factor: float) -> None:
    """Swapping the sides swaps the two p-values and inverts the ratio and its interval."""
    new = [value * factor for value in OLD]
    there, back = compare(OLD, new, 0.01), compare(new, OLD, 0.01)
    assert (there.p_more, there.p_less) == pytest.approx((back.p_less, back.p_more))
    assert (there.ratio, there.low, there.high) == pytest.approx((1 / back.ratio, 1 / back.high, 1 / back.low))
    assert there.direction == ("more" if factor > 1 else "less")


def test_equal_numbers_are_compared_without_a_warning() -> None:
    """A quantised clock that gives one number throughout neither divides by zero nor is taken for infinitely exact."""
    assert compare([5.0] * 6, [5.0] * 6, 0.01).p_outside < 0.001
    assert compare([5.0] * 6, [5.5] * 6, 0.01).p < 0.001
    assert compare([5.0] * 6, [5.0001] * 6).p > 0.01


@pytest.mark.parametrize(("old", "new"), [([1.0], [1.0, 2.0]), ([], []), ([1.0, 0.0], [1.0, 1.0]), ([1.0, float("nan")], [1.0, 1.0])])
def test_what_cannot_be_compared_is_an_error(old: list[float], new: list[float]) -> None:
    """One process alone has no spread, and a time of nothing has no logarithm."""
    with pytest.raises(ValueError, match="expected two a side, all above zero"):
        compare(old, new)


def test_holm_by_hand() -> None:
    """The smallest of four is multiplied by four, the next by three; none is smaller than the one before, none above one."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([[0.9, 0.8], [0.01, 0.02]]) == pytest.approx(np.array([[1.0, 1.0], [0.02, 0.02]]))
    assert len(holm([])) == 0
    assert statistics.benjamini_hochberg([0.01, 0.02, 0.5]) == pytest.approx([0.03, 0.03, 0.5])
    assert len(statistics.benjamini_hochberg([])) == 0


@pytest.mark.parametrize("processes", [6, 8, 12])
@pytest.mark.parametrize("noise", NOISE)
def test_false_alarms_of_the_gate(noise: str, processes: int) -> None:
    """Whatever the shape of the noise, 60 unchanged metrics without margins give any alarm in at most 5 % of comparisons."""
    assert any_alarm(noise, processes) <= ALPHA + 0.01  # two standard errors of 2,000 rounds


def test_welch_with_many_processes_would_not_keep_its_level() -> None:
    """With two sharp modes and eight processes a side Welch's test cries wolf more often than it may: the reason for ranks."""
    draw = np.random.default_rng(11)
    shape = (2000, HEADLINES, 8)
    more, less = p_changed(NOISE["two sharp modes"](draw, shape), NOISE["two sharp modes"](draw, shape))
    assert np.mean(holm(np.minimum(1, 2 * np.minimum(more, less))).min(axis=-1) <= ALPHA) > ALPHA + 0.015


def test_samples_within_a_process_prove_nothing() -> None:
    """A rank test on twenty samples of one process a side calls a change in most comparisons of a release with itself."""
    draw = np.random.default_rng(11)
    shape = (500, 1)
    sides = [draw.normal(0, 0.02, shape) + draw.normal(0, 0.01, (500, 20)) for _ in range(2)]
    more, less = p_changed(*sides, 0.0, "rank")
    assert np.mean(2 * np.minimum(more, less) <= ALPHA) > 0.5


@pytest.mark.parametrize(("sd", "margin", "processes"), [(0.005, 0.01, 6), (0.004, 0.03, 6), (0.02, 0.1, 6), (0.01, 0.01, 7)])
def test_the_smallest_change_is_found(sd: float, margin: float, processes: int) -> None:
    """A change of the size that is called the smallest to be found is found in nine of ten comparisons or more, half of it in few."""
    draw = np.random.default_rng(11)
    smallest = smallest_change(sd * (2 / processes) ** 0.5, 2 * (processes - 1), margin, LEVEL)
    found = []
    for change in (smallest, margin + (smallest - margin) / 2):
        before, after = (draw.normal(shift, sd, (4000, processes)) for shift in (0, np.log1p(change)))
        more, less = p_changed(before, after, np.log1p(margin))
        found.append(np.mean(2 * np.minimum(more, less) <= LEVEL))
    assert found[0] >= 0.9
    assert found[1] <= 0.3


def test_ranks_find_the_smallest_change_too() -> None:
    """What a comparison by ranks calls the smallest change that it would have found is found in 95 % or more."""
    draw = np.random.default_rng(11)
    change = smallest_change(0.01 * (2 / 8) ** 0.5 * statistics._PRICE_OF_RANKS, 14, 0.0, LEVEL)
    more, _ = p_changed(draw.normal(0, 0.01, (4000, 8)), draw.normal(np.log1p(change), 0.01, (4000, 8)), 0.0, "rank")
    assert np.mean(2 * more <= LEVEL) > 0.92


def test_the_interval_covers() -> None:
    """The 95 % interval of six processes a side holds the true ratio in 95 % of simulated comparisons."""
    draw = np.random.default_rng(11)
    found = [compare(np.exp(draw.normal(0, 0.01, 6)), np.exp(draw.normal(0.02, 0.03, 6))) for _ in range(1000)]
    assert np.mean([one.low <= np.exp(0.02) <= one.high for one in found]) == pytest.approx(0.95, abs=0.015)


def test_same_is_said_of_what_moved_by_the_margin_in_five_percent() -> None:
    """Two one-sided tests call a cost that moved by the very margin the same in at most 5 % of comparisons."""
    draw = np.random.default_rng(11)
    before, after = draw.normal(0, 0.005, (4000, 6)), draw.normal(np.log1p(0.03), 0.005, (4000, 6))
    assert np.mean(statistics.p_outside(before, after, np.log1p(0.03)) <= ALPHA) == pytest.approx(ALPHA, abs=0.01)
