"""Simulated comparisons in which the truth is known: how often the gate cries wolf, and what it finds. The tables of docs/method.md.

`python -m replaydrift.costs.simulation` prints them. Everything is drawn with a fixed seed; nothing of it was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from replaydrift.costs import statistics
from replaydrift.costs.metrics import MOST_HEADLINES
from replaydrift.costs.splits import ways
from replaydrift.costs.statistics import ALPHA, Test

SEED: Final = 11
ROUNDS: Final = 20_000
# Each round of a gate draws this many metrics, so fewer rounds do.
GATE_ROUNDS: Final = 4_000

Noise = Callable[[np.random.Generator, tuple[int, ...]], Any]

# What log medians do between processes: the shapes that were seen in the wild, and one that is as bad as it gets.
NOISE: Final[Mapping[str, Noise]] = {
    "normal, 1 %": lambda draw, shape: draw.normal(0, 0.01, shape),
    "heavy tails (t, 3 degrees), 1 %": lambda draw, shape: 0.01 * draw.standard_t(3, shape),
    "exponential, 10 %": lambda draw, shape: draw.exponential(0.1, shape),
    "30 % of processes slower by 4 %, noise 0.5 %": lambda draw, shape: 0.04 * (draw.random(shape) < 0.3) + draw.normal(0, 0.005, shape),
    "half of the processes slower by 4 %, noise 0.1 %": lambda draw, shape: 0.04 * (draw.random(shape) < 0.5) + draw.normal(0, 0.001, shape),
}


def false_alarms(noise: Noise, processes: int, test: Test, margin: float = 0.0, metrics: int = MOST_HEADLINES, rounds: int = GATE_ROUNDS) -> float:
    """The share of comparisons, in which nothing changed, that Holm's gate over so many metrics calls any change."""
    draw = np.random.default_rng(SEED)
    shape = (rounds, metrics, processes)
    more, less = statistics.p_changed(noise(draw, shape), noise(draw, shape), np.log1p(margin), test)
    return float(np.mean(statistics.holm(np.minimum(1, 2 * np.minimum(more, less))).min(axis=-1) <= ALPHA))


def within_one_process(samples: int = 20, sd: float = 0.02, rounds: int = 2_000) -> float:
    """The share of false alarms of one rank test at 5 % on the samples of one process a side, where processes vary by `sd`."""
    draw = np.random.default_rng(SEED)
    old, new = (draw.normal(0, sd, (rounds, 1)) + draw.normal(0, 0.01, (rounds, samples)) for _ in range(2))
    more, less = statistics.p_changed(old, new, 0.0, "rank")
    return float(np.mean(2 * np.minimum(more, less) <= ALPHA))


def runs_above(noise: Noise, visits: int = 12, metrics: int = 28, runs: int = 1000) -> float:
    """The share of A/A runs of so many visits, in which nothing changed, whose share of splits with any flag lies above the nominal rate."""
    draw = np.random.default_rng(SEED)
    sides = np.asarray(list(ways(visits, visits // 2, 500, SEED)))
    above = 0
    for _ in range(runs):
        logs = noise(draw, (metrics, visits))
        more, less = statistics.p_changed(logs[:, sides[:, 0]].swapaxes(0, 1), logs[:, sides[:, 1]].swapaxes(0, 1))
        adjusted = statistics.holm(np.minimum(1, 2 * np.minimum(more, less)))
        above += float(np.mean(adjusted.min(axis=-1) <= ALPHA)) > ALPHA
    return above / runs


def found(change: float, sd: float, processes: int, margin: float, metrics: int = MOST_HEADLINES, rounds: int = ROUNDS) -> float:
    """The share of comparisons that find this growth, in normal noise, at the strictest level of a gate of so many metrics."""
    draw = np.random.default_rng(SEED)
    before, after = draw.normal(0, sd, (rounds, processes)), draw.normal(np.log1p(change), sd, (rounds, processes))
    more, _ = statistics.p_changed(before, after, np.log1p(margin), statistics.chosen_test(processes))
    return float(np.mean(2 * more <= statistics.per_test(ALPHA, metrics)))


def called_same(sd: float, processes: int, margin: float, rounds: int = ROUNDS) -> float:
    """The share of comparisons, in which nothing changed, that call the cost the same."""
    draw = np.random.default_rng(SEED)
    before, after = draw.normal(0, sd, (rounds, processes)), draw.normal(0, sd, (rounds, processes))
    return float(np.mean(statistics.p_outside(before, after, np.log1p(margin)) <= ALPHA))


def smallest(sd: float, processes: int, margin: float, metrics: int = MOST_HEADLINES) -> float:
    """The growth that a gate of so many metrics finds in about 95 % of comparisons."""
    error = sd * (2 / processes) ** 0.5 * statistics.price(statistics.chosen_test(processes))
    return statistics.smallest_change(error, 2 * (processes - 1), margin, statistics.per_test(ALPHA, metrics))


# Title, what the first column says, the other columns, and the rows.
Table = tuple[str, Sequence[str], Sequence[tuple[str, Sequence[float]]]]

_ALARMS: Final[Sequence[tuple[str, int, Test]]] = (
    ("3, Welch", 3, "welch"), ("6, Welch", 6, "welch"), ("12, Welch", 12, "welch"), ("8, ranks", 8, "rank"), ("12, ranks", 12, "rank"),
)  # fmt: skip
_POWERS: Final = ((0.01, (0.02, 0.03, 0.05, 0.10)), (0.03, (0.05, 0.10, 0.20)))
_SDS: Final = (0.001, 0.003, 0.005, 0.01, 0.02)
_HOST_SDS: Final = (0.02, 0.05, 0.10, 0.20)
_HOST_PROCESSES: Final = (6, 8, 12, 24)


def tables(rounds: int = ROUNDS, gate_rounds: int = GATE_ROUNDS) -> list[Table]:
    """All tables, as shares and changes: 0.05 is 5 %. So many rounds stand behind each share, and behind each of a whole gate."""
    alarms = [
        (name, [false_alarms(noise, processes, test, rounds=gate_rounds) for _, processes, test in _ALARMS]) for name, noise in NOISE.items()
    ]
    made: list[Table] = [("noise between processes", [name for name, _, _ in _ALARMS], alarms)]
    for margin, changes in _POWERS:
        columns = [*(f"finds {100 * change:.0f} %" for change in changes), "unchanged: same"]
        rows = []
        for sd in _SDS:
            shares = [found(change, sd, 6, margin, rounds=rounds) for change in changes]
            rows.append((f"{100 * sd:.1f} %", [*shares, called_same(sd, 6, margin, rounds)]))
        made.append((f"noise, margin {100 * margin:.0f} %", columns, rows))
    columns = [f"{processes} processes" for processes in _HOST_PROCESSES]
    rows = [(f"{100 * sd:.0f} %", [smallest(sd, processes, 0.10) for processes in _HOST_PROCESSES]) for sd in _HOST_SDS]
    return [*made, ("noise, margin 10 %", columns, rows)]


def as_markdown(table: Table) -> str:
    """The table with percent in its cells."""
    first, columns, rows = table
    lines = [f"| {' | '.join([first, *columns])} |", "|---|" + "---:|" * len(columns)]
    lines += [f"| {' | '.join([name, *(f'{100 * value:.1f} %' for value in values)])} |" for name, values in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    print("\n\n".join(as_markdown(table) for table in tables()))
    print("\nSamples of one process a side:", within_one_process())
    print("A/A runs above the nominal rate:", {name: runs_above(noise) for name, noise in NOISE.items()})
