"""Two sides of one cost, as lists of numbers: is it changed, the same, or can nobody tell? The process is the sample.

Each number is what one process came to (its median); what it sampled within itself says nothing about other processes, and a test on
those samples calls a change in every other comparison. All tests work on logarithms, so that a change is a ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isfinite, log1p
from typing import Any, Final, Literal

import numpy as np
from scipy import special, stats

Test = Literal["welch", "rank"]

# The chance that a gate calls any change where there is none; for the list, the share of its entries that are none.
ALPHA: Final = 0.05
# So many processes a side before anything is called changed: with fewer, noise that has two modes separates two sides too often.
NEEDED: Final = 6
# From so many processes a side on, a rank test can reach the level that a gate of 60 metrics needs; and from about there on Welch's
# test no longer keeps that level where noise has two sharp modes.
RANKS_FROM: Final = 8
POWER: Final = 0.95

# Clocks are quantised and may give equal medians throughout; nobody measures a time to 0.01 %, so no side is taken as more exact.
_FINEST: Final = 1e-4
# Ranks that tie count against a change.
_TIE: Final = 1e-9
# Simulated at eight processes a side, where it is dearest.
_PRICE_OF_RANKS: Final = 1.12


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two sides of one cost say: the ratio new over old with its 95 % interval, and the p-values of three tests.

    `p_more`: that the cost has not grown beyond the margin; `p_less`: that it has not shrunk beyond it; `p_outside`: that it
    moved by the margin or more. Small values reject. `spread` is the standard error of the log ratio, with `freedom` degrees.
    """

    ratio: float
    low: float
    high: float
    p_more: float
    p_less: float
    p_outside: float
    spread: float
    freedom: float
    processes: tuple[int, int]
    margin: float
    test: Test

    @property
    def p(self) -> float:
        """The p-value of a change in either direction: the smaller one, doubled since both were looked at."""
        return min(1.0, 2 * min(self.p_more, self.p_less))

    @property
    def direction(self) -> str:
        """`more` or `less`: where a change would lead."""
        return "more" if self.p_more < self.p_less else "less"

    def smallest(self, level: float) -> float:
        """The smallest change, 0.03 for 3 %, that a test at this level (both directions) finds in about 95 % of such noise."""
        return smallest_change(self.spread * price(self.test), self.freedom, self.margin, level)


def compare(old: Sequence[float], new: Sequence[float], margin: float = 0.0, test: Test | None = None) -> Comparison:
    """The comparison of two sides, one positive number a process, at least two a side; ValueError for anything else.

    `margin` is the change that matters, 0.01 for 1 %. Without `test` it is the one that `chosen_test` names.
    """
    lowest = min([*old, *new], default=0)
    if min(len(old), len(new)) < 2 or not lowest > 0 or not all(isfinite(value) for value in (*old, *new)):
        raise ValueError(f"found {len(old)} and {len(new)} numbers, the lowest {lowest}: expected two a side, all above zero")
    test = test or chosen_test(len(old), len(new))
    before, after, delta = np.log(np.asarray(old, float)), np.log(np.asarray(new, float)), log1p(margin)
    difference, error, freedom = (float(value) for value in welch(before, after))
    half = float(stats.t.isf(0.025, freedom)) * error
    p_more, p_less = (float(value) for value in p_changed(before, after, delta, test))
    return Comparison(
        ratio=exp(difference),
        low=exp(difference - half),
        high=exp(difference + half),
        p_more=p_more,
        p_less=p_less,
        p_outside=float(p_outside(before, after, delta)),
        spread=error,
        freedom=freedom,
        processes=(len(old), len(new)),
        margin=margin,
        test=test,
    )


def chosen_test(*processes: int) -> Test:
    """The test for sides of so many processes: by ranks where both have enough, else Welch's, whose p-value has no floor."""
    return "rank" if min(processes) >= RANKS_FROM else "welch"


def price(test: Test) -> float:
    """How much larger a change in normal noise must be for this test to find it as often as Welch's does."""
    return _PRICE_OF_RANKS if test == "rank" else 1.0


def welch(before: Any, after: Any) -> tuple[Any, Any, Any]:
    """Difference of the means, its standard error and degrees of freedom (Welch–Satterthwaite), along the last axis of two arrays."""
    variances = [np.maximum(np.var(side, axis=-1, ddof=1), _FINEST**2) / side.shape[-1] for side in (before, after)]
    total = variances[0] + variances[1]
    freedom = total**2 / sum(v**2 / (side.shape[-1] - 1) for v, side in zip(variances, (before, after), strict=True))
    return np.mean(after, axis=-1) - np.mean(before, axis=-1), np.sqrt(total), freedom


def p_changed(before: Any, after: Any, delta: Any = 0.0, test: Test = "welch") -> tuple[Any, Any]:
    """One-sided p-values, along the last axis of two arrays of log medians: grown beyond `delta`, and shrunk beyond it.

    `welch` takes the log medians as normal; `rank` (Mann and Whitney, exact) takes nothing but that the two sides have one shape.
    """
    if test == "rank":
        shift = np.expand_dims(np.asarray(delta, float), -1) + _TIE
        more = stats.mannwhitneyu(after - shift, before, alternative="greater", method="exact", axis=-1)
        less = stats.mannwhitneyu(after + shift, before, alternative="less", method="exact", axis=-1)
        return more.pvalue, less.pvalue
    difference, error, freedom = welch(before, after)
    return stats.t.sf((difference - delta) / error, freedom), stats.t.cdf((difference + delta) / error, freedom)


def p_outside(before: Any, after: Any, delta: Any) -> Any:
    """The p-value of "it moved by `delta` or more", along the last axis: the larger of two one-sided tests (TOST)."""
    difference, error, freedom = welch(before, after)
    return np.maximum(stats.t.cdf((difference - delta) / error, freedom), stats.t.sf((difference + delta) / error, freedom))


def holm(p_values: Any) -> Any:
    """P-values adjusted so that rejecting those up to α gives any false alarm with probability α at most; last axis is the family."""
    values = np.asarray(p_values, float)
    count = values.shape[-1]
    order = np.argsort(values, axis=-1)
    stepped = np.take_along_axis(values, order, -1) * np.arange(count, 0, -1)
    adjusted = np.empty_like(values)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0), -1)
    return adjusted


def benjamini_hochberg(p_values: Any) -> Any:
    """P-values adjusted so that of those up to q a share of q is false on average; last axis is the family."""
    values = np.asarray(p_values, float)
    return stats.false_discovery_control(values, axis=-1) if values.size else values


def per_test(level: float, family: int) -> float:
    """The level at which each of a family is tested by Holm's first and strictest step."""
    return level / max(family, 1)


@lru_cache(maxsize=4096)
def _distance(freedom: float, level: float, power: float) -> float:
    """How many standard errors beyond the margin a change must lie to be found with this power at this two-sided level."""
    return float(special.nctdtrinc(freedom, 1 - power, stats.t.isf(level / 2, freedom)))


def smallest_change(error: float, freedom: float, margin: float, level: float, power: float = POWER) -> float:
    """The smallest growth, 0.03 for 3 %, that Welch's test at this two-sided level finds with about this power."""
    return exp(log1p(margin) + error * _distance(round(freedom, 3), level, power)) - 1
