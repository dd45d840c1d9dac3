"""A release against itself: how often the gate cries wolf, how noisy each cost is, and which planted slow-downs are found.

The visits of one release are split at random into two sides, many times; each split is a comparison in which nothing changed. What
the gate says of it is computed exactly as for two releases, for all splits at once. A slow-down is planted by multiplying one
metric of one side, so that its noise stays the measured one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb, exp, log
from random import Random
from typing import Any, Final

import numpy as np
from scipy import stats

from replaydrift.costs import statistics
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.records import Costs
from replaydrift.costs.statistics import ALPHA, NEEDED, POWER
from replaydrift.errors import ReplaydriftError

SPLITS: Final = 1000
PLANTED: Final = (0.02, 0.05, 0.10, 0.20, 0.50, 1.00)
# A slow-down of this size in these metrics must be found with the probability that `statistics.POWER` names.
TARGET: Final = 0.05
TARGETED: Final = ("replay_gpu_us", "trace_gpu_ms")


class CalibrationError(ReplaydriftError):
    """The costs cannot calibrate anything: too few visits, or nothing that was timed in all of them."""


@dataclass(frozen=True, slots=True)
class Alarms:
    """The share of splits, in which nothing changed, with any flag: in the gate, and in the list of everything else."""

    gate: float
    listed: float


@dataclass(frozen=True, slots=True)
class Noise:
    """What an unchanged metric of one subject does between processes; shares are of splits.

    `sd` is the standard deviation of log medians, `adjacent` the same from neighbouring visits alone: much less than `sd` means
    drift, which pairing visits would take away. `needed_margin` is the margin from which on the metric is called the same in 95 %
    of splits. `found` gives for each slow-down of `PLANTED` the share of splits in which the gate calls it changed; nothing for a
    metric that the gate does not ask about.
    """

    subject: str
    metric: str
    headline: bool
    median: float
    sd: float
    adjacent: float
    margin: float
    same: float
    needed_margin: float
    smallest: float
    found: tuple[float, ...]


@dataclass(frozen=True)
class Calibration:
    """What a release against itself says of the gate. `left_out` counts metrics that some visit lacks."""

    release: str
    block: str
    visits: int
    side: int
    splits: int
    with_margins: Alarms
    without_margins: Alarms
    noise: tuple[Noise, ...]
    left_out: int = 0

    @property
    def calibrated(self) -> bool:
        """True where no share of false alarms lies above the nominal rate."""
        alarms = (self.with_margins, self.without_margins)
        return all(share <= ALPHA for pair in alarms for share in (pair.gate, pair.listed))

    @property
    def power(self) -> float | None:
        """The share of targeted slow-downs of `TARGET` that are found, over metrics and splits; None where no such metric was measured."""
        shares = [one.found[PLANTED.index(TARGET)] for one in self.noise if one.headline and one.metric in TARGETED]
        return float(np.mean(shares)) if shares else None

    @property
    def sharp(self) -> bool:
        """True where enough of the targeted slow-downs are found, and there are any to find."""
        return self.power is not None and self.power >= POWER


def calibrate(costs: Costs, side: int = NEEDED, splits: int = SPLITS, seed: int = 1) -> Calibration:
    """The calibration by at most `splits` random splits into two sides of `side` visits; all of them where there are fewer.

    CalibrationError where there are fewer than twice `side` visits, or nothing was timed.
    """
    visits = len(costs.kept)
    where = f"{costs.environment.release} in block {costs.block.name!r}"
    if visits < 2 * side:
        raise CalibrationError(
            f"{where} has {visits} visits that count, and two sides of {side} need {2 * side}: measure more with `nox -s aa`",
        )
    series = [(subject, metric, values) for subject, metric, values in costs.series() if metric in METRICS and not METRICS[metric].exact]
    whole = [one for one in series if len(one[2]) == visits and min(one[2]) > 0]
    if not whole:
        raise CalibrationError(f"{where} has no time that all visits measured: an A/A run needs a GPU (counts need no calibration)")
    logs = np.log(np.asarray([values for _, _, values in whole], float))
    chosen = np.asarray(list(_splits(visits, side, splits, seed)))
    names = [(subject, metric) for subject, metric, _ in whole]
    table = _Table(names, logs[:, chosen[:, 0]].swapaxes(0, 1), logs[:, chosen[:, 1]].swapaxes(0, 1))
    return Calibration(
        release=costs.environment.release,
        block=costs.block.name,
        visits=visits,
        side=side,
        splits=len(chosen),
        with_margins=table.alarms(table.margins),
        without_margins=table.alarms(np.zeros(len(names))),
        noise=tuple(table.noise(row, logs[row]) for row in range(len(names))),
        left_out=len(series) - len(whole),
    )


def _splits(visits: int, side: int, most: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """Ways to lay out visits on two sides, which side is which left aside: all where there are no more than `most`, else drawn."""
    if visits == 2 * side and comb(visits, side) // 2 <= most:
        everyone = set(range(visits))
        # The first half of the combinations in this order are those that hold the first visit: each split once.
        for old in islice(combinations(range(visits), side), comb(visits, side) // 2):
            yield list(old), sorted(everyone - set(old))
        return
    random = Random(seed)  # noqa: S311 - a draw that can be repeated, not a secret
    for _ in range(most):
        drawn = random.sample(range(visits), 2 * side)
        yield drawn[:side], drawn[side:]


class _Table:
    """All splits of all metrics: arrays of log medians, split × metric × process."""

    def __init__(self, names: Sequence[tuple[str, str]], before: Any, after: Any) -> None:
        self.names, self.before, self.after = names, before, after
        self.margins = np.log1p([METRICS[metric].margin for _, metric in names])
        self.headline = np.asarray([is_headline(*name) for name in names])
        self.test = statistics.chosen_test(before.shape[-1])
        self.unchanged = self._p(slice(None), self.margins)

    def alarms(self, margins: Any) -> Alarms:
        """The shares of splits with any flag at these margins."""
        p_values = self._p(slice(None), margins)
        gate, listed = p_values[:, self.headline], p_values[:, ~self.headline]
        return Alarms(
            gate=_any(statistics.holm(gate)),
            listed=_any(statistics.benjamini_hochberg(listed)),
        )

    def noise(self, row: int, logs: Any) -> Noise:
        """What one metric does over all splits; `logs` are its log medians in the order of the visits."""
        subject, metric = self.names[row]
        headline = bool(self.headline[row])
        before, after = self.before[:, row], self.after[:, row]
        difference, error, freedom = statistics.welch(before, after)
        family = int(np.sum(self.headline == headline))
        margin = METRICS[metric].margin
        level = statistics.per_test(ALPHA, family)
        reach = np.abs(difference) + stats.t.isf(ALPHA, freedom) * error
        return Noise(
            subject=subject,
            metric=metric,
            headline=headline,
            median=exp(float(np.median(logs))),
            sd=float(np.std(logs, ddof=1)),
            adjacent=float(np.sqrt(np.mean(np.diff(logs) ** 2) / 2)),
            margin=margin,
            same=float(np.mean(statistics.p_outside(before, after, self.margins[row]) <= ALPHA)),
            needed_margin=float(np.expm1(np.quantile(reach, 0.95))),
            smallest=statistics.smallest_change(
                float(np.median(error)) * statistics.price(self.test), float(np.median(freedom)), margin, level,
            ),
            found=tuple(self._found(row, change) for change in PLANTED) if headline else (),
        )  # fmt: skip

    def _found(self, row: int, change: float) -> float:
        """The share of splits in which the gate calls this slow-down of one metric, and of no other, a change for the worse."""
        more, less = statistics.p_changed(self.before[:, row], self.after[:, row] + log(1 + change), self.margins[row], self.test)
        p_values = self.unchanged.copy()
        p_values[:, row] = _both(more, less)
        adjusted = statistics.holm(p_values[:, self.headline])[:, int(np.sum(self.headline[:row]))]
        return float(np.mean((adjusted <= ALPHA) & (more < less)))

    def _p(self, rows: Any, margins: Any) -> Any:
        return _both(*statistics.p_changed(self.before[:, rows], self.after[:, rows], margins, self.test))


def _both(more: Any, less: Any) -> Any:
    """P-values of a change in either direction."""
    return np.minimum(1.0, 2 * np.minimum(more, less))


def _any(adjusted: Any) -> float:
    """The share of rows with any rejection; none where there is nothing to reject."""
    return float(np.mean(adjusted.min(axis=-1) <= ALPHA)) if adjusted.shape[-1] else 0.0
