"""Many splits of one release's visits at once, as arrays: what the gate says of each, computed exactly as for two releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb, log
from random import Random
from typing import Any

import numpy as np

from replaydrift.costs import statistics
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.statistics import ALPHA


def ways(visits: int, side: int, most: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
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


@dataclass(frozen=True, slots=True)
class Alarms:
    """The share of splits, in which nothing changed, with any flag: in the gate, and in the list of everything else."""

    gate: float
    listed: float


class Table:
    """All splits of all metrics: arrays of log medians, split × metric × process."""

    def __init__(self, names: Sequence[tuple[str, str]], before: Any, after: Any) -> None:
        self.names, self.before, self.after = names, before, after
        self.margins = np.log1p([METRICS[metric].margin for _, metric in names])
        self.headline = np.asarray([is_headline(*name) for name in names])
        self.test = statistics.chosen_test(before.shape[-1])
        self.unchanged = self._p(self.margins)

    def found_more(self) -> Any:
        """The share of splits in which the gate calls each of these metrics, all headlines, changed for the worse."""
        more, less = statistics.p_changed(self.before, self.after, self.margins, self.test)
        return np.mean((statistics.holm(_both(more, less)) <= ALPHA) & (more < less), axis=0)

    def alarms(self, margins: Any) -> Alarms:
        """The shares of splits with any flag at these margins."""
        p_values = self._p(margins)
        gate, listed = p_values[:, self.headline], p_values[:, ~self.headline]
        return Alarms(
            gate=_any(statistics.holm(gate)),
            listed=_any(statistics.benjamini_hochberg(listed)),
        )

    def found(self, row: int, change: float) -> float:
        """The share of splits in which the gate calls this slow-down of one metric, and of no other, a change for the worse."""
        more, less = statistics.p_changed(self.before[:, row], self.after[:, row] + log(1 + change), self.margins[row], self.test)
        p_values = self.unchanged.copy()
        p_values[:, row] = _both(more, less)
        adjusted = statistics.holm(p_values[:, self.headline])[:, int(np.sum(self.headline[:row]))]
        return float(np.mean((adjusted <= ALPHA) & (more < less)))

    def _p(self, margins: Any) -> Any:
        return _both(*statistics.p_changed(self.before, self.after, margins, self.test))


def _both(more: Any, less: Any) -> Any:
    """P-values of a change in either direction."""
    return np.minimum(1.0, 2 * np.minimum(more, less))


def _any(adjusted: Any) -> float:
    """The share of rows with any rejection; none where there is nothing to reject."""
    return float(np.mean(adjusted.min(axis=-1) <= ALPHA)) if adjusted.shape[-1] else 0.0
