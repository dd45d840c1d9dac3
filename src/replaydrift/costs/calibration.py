"""A release against itself: how often the gate cries wolf, how noisy each cost is, and which planted slow-downs are found.

The visits of one release are split at random into two sides, many times; each split is a comparison in which nothing changed. What
the gate says of it is computed exactly as for two releases, for all splits at once. A slow-down is planted by multiplying one
metric of one side, so that its noise stays the measured one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from random import Random
from typing import Any, Final

import numpy as np
from scipy import stats

from replaydrift.costs import statistics
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.pace import is_pace, paced_values, usual_pace
from replaydrift.costs.records import Costs
from replaydrift.costs.splits import Alarms, Table, ways
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
class Noise:
    """What an unchanged metric of one subject does between processes; shares are of splits.

    `sd` is the standard deviation of log medians, `adjacent` the same from neighbouring visits alone: much less than `sd` means
    drift, which pairing visits would take away. `sd_quartile` and `sd_lowest` are what it would be if a visit gave the lower quartile
    of its samples, or the lowest: much less than `sd` means that a median is not the number to take; None where that is no time, or is
    taken at the host's pace.
    `sd_plain` is what it would be had the host's pace not been taken out of a host time; None where it was not.
    `needed_margin` is the margin from which on the metric is called the same in 95 % of splits. `found` gives for each slow-down of
    `PLANTED` the share of splits in which the gate calls it changed; nothing for a metric that the gate does not ask about.
    """

    subject: str
    metric: str
    headline: bool
    median: float
    sd: float
    adjacent: float
    sd_quartile: float | None
    sd_lowest: float | None
    sd_plain: float | None
    margin: float
    same: float
    needed_margin: float
    smallest: float
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A headline metric of a block with planted slow-downs beside one without: the ratio of medians, and the share of splits that
    call it changed for the worse. What was not slowed down is the control.
    """

    subject: str
    metric: str
    ratio: float
    found: float


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
    if visits < 2 * side:
        raise CalibrationError(
            f"{_where(costs)} has {visits} visits that count, and two sides of {side} need {2 * side}: measure more with `nox -s aa`",
        )
    (logs,) = _log_medians(costs)
    chosen = np.asarray(list(ways(visits, side, splits, seed)))
    names = list(logs)
    rows = np.asarray([logs[name] for name in names])
    table = Table(names, rows[:, chosen[:, 0]].swapaxes(0, 1), rows[:, chosen[:, 1]].swapaxes(0, 1))
    return Calibration(
        release=costs.environment.release,
        block=costs.block.name,
        visits=visits,
        side=side,
        splits=len(chosen),
        with_margins=table.alarms(table.margins),
        without_margins=table.alarms(np.zeros(len(names))),
        noise=tuple(_noise(table, row, rows[row], costs) for row in range(len(names))),
        left_out=len(_times(costs)) - len(names),
    )


def planted(plain: Costs, slow: Costs, side: int = NEEDED, splits: int = SPLITS, seed: int = 1) -> tuple[Planted, ...]:
    """What the gate finds between visits of a release and visits of the same release with planted slow-downs, `side` drawn of each.

    CalibrationError where a block has too few visits, or the two were not measured under the same conditions.
    """
    if plain.environment.place != slow.environment.place or plain.environment.release != slow.environment.release:
        raise CalibrationError(f"{_where(plain)} and {_where(slow)} are not the same release on the same GPU")
    for costs in (plain, slow):
        if len(costs.kept) < side:
            raise CalibrationError(f"{_where(costs)} has {len(costs.kept)} visits that count, and {side} are needed")
    before, after = _log_medians(plain, slow)
    names = [name for name in before if is_headline(*name)]
    if not names:
        raise CalibrationError(f"{_where(plain)} and {_where(slow)} have no headline metric in common")
    random = Random(seed)  # noqa: S311 - a draw that can be repeated, not a secret
    sides = [np.asarray([random.sample(range(len(costs.kept)), side) for _ in range(splits)]) for costs in (plain, slow)]
    olds, news = (np.asarray([logs[name] for name in names]) for logs in (before, after))
    table = Table(names, olds[:, sides[0]].swapaxes(0, 1), news[:, sides[1]].swapaxes(0, 1))
    found = table.found_more()
    ratios = np.exp(np.median(news, axis=-1) - np.median(olds, axis=-1))
    return tuple(Planted(*name, float(ratio), float(share)) for name, ratio, share in zip(names, ratios, found, strict=True))


def _where(costs: Costs) -> str:
    return f"{costs.environment.release} in block {costs.block.name!r}"


def _log_medians(*sides: Costs) -> list[dict[tuple[str, str], Any]]:
    """For each side the logarithms, visit by visit, of every time that all visits of all sides measured, by subject and metric."""
    found: list[dict[tuple[str, str], Any]] = [{} for _ in sides]
    for name in _times(sides[0]):
        values = paced_values(sides, *name)
        if all(len(own) == len(side.kept) and min(own) > 0 for own, side in zip(values, sides, strict=True)):
            for logs, own in zip(found, values, strict=True):
                logs[name] = np.log(own)
    if not found[0]:
        listed = " and ".join(_where(side) for side in sides)
        raise CalibrationError(f"{listed} has no time that all visits measured: an A/A run needs a GPU (counts need no calibration)")
    return found


def _times(costs: Costs) -> list[tuple[str, str]]:
    """Subject and metric of every time that any visit measured."""
    every = [(subject, metric) for subject, metric, _ in costs.series() if metric in METRICS]
    return [(subject, metric) for subject, metric in every if not METRICS[metric].exact and not is_pace(metric)]


def _spread(costs: Costs, subject: str, metric: str, quantile: float) -> float | None:
    """The standard deviation between visits of the logarithm of this quantile of their samples; None where one is not above zero."""
    values = [float(np.quantile(one.metrics[metric], quantile)) for one in costs.of(subject)]
    return float(np.std(np.log(values), ddof=1)) if min(values) > 0 else None


def _noise(table: Table, row: int, logs: Any, costs: Costs) -> Noise:
    """What one metric does over all splits; `logs` are its log medians in the order of the visits."""
    subject, metric = table.names[row]
    paced = usual_pace([costs], subject, metric) is not None
    headline = bool(table.headline[row])
    before, after = table.before[:, row], table.after[:, row]
    difference, error, freedom = statistics.welch(before, after)
    family = int(np.sum(table.headline == headline))
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
        sd_quartile=None if paced else _spread(costs, subject, metric, 0.25),
        sd_lowest=None if paced else _spread(costs, subject, metric, 0.0),
        sd_plain=_spread(costs, subject, metric, 0.5) if paced else None,
        margin=margin,
        same=float(np.mean(statistics.p_outside(before, after, table.margins[row]) <= ALPHA)),
        needed_margin=float(np.expm1(np.quantile(reach, 0.95))),
        smallest=statistics.smallest_change(
            float(np.median(error)) * statistics.price(table.test), float(np.median(freedom)), margin, level,
        ),
        found=tuple(table.found(row, change) for change in PLANTED) if headline else (),
    )  # fmt: skip
