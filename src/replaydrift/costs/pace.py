"""Host times as if the host had run at one pace: the one value a visit that tests between releases compare.

Each sample is divided by the pace that was measured beside it, and all are multiplied by the mean pace of all sides, so that they are
times still. Where a visit has no pace, or the sides ran different Pythons (the pace is a piece of Python's work), times stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean, median

from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import Costs, Subject


def is_pace(metric: str) -> bool:
    """True for what says how fast the host was, which is no cost and never compared."""
    return metric in METRICS and METRICS[metric].clock == "pace"


def usual_pace(sides: Sequence[Costs], subject: str, metric: str) -> float | None:
    """The mean pace, in microseconds a beat, at which times of this metric compare; None where they compare as they were measured."""
    pace = METRICS[metric].pace
    if not pace or len({str(side.environment.facts.get("python", "")) for side in sides}) > 1:
        return None
    paces = [one.value(pace) for side in sides for one in _having(side, subject, metric)]
    known = [found for found in paces if found]
    return geometric_mean(known) if known and len(known) == len(paces) else None


def paced_values(sides: Sequence[Costs], subject: str, metric: str) -> list[tuple[float, ...]]:
    """For each side one value a visit that counts: of a time of the host at one pace, where that can be had, else as measured."""
    usual = usual_pace(sides, subject, metric)
    if usual is None:
        return [side.values(subject, metric) for side in sides]
    pace = METRICS[metric].pace
    return [tuple(usual * _in_beats(one, metric, pace) for one in _having(side, subject, metric)) for side in sides]


def _having(side: Costs, subject: str, metric: str) -> list[Subject]:
    return [one for one in side.of(subject) if one.value(metric) is not None]


def _in_beats(one: Subject, metric: str, pace: str) -> float:
    """A visit's value of a metric over the pace: the median of the samples' own ratios, where each has a beat of its own."""
    samples, beats = one.metrics[metric], one.metrics[pace]
    if len(samples) == len(beats) and min(beats) > 0:
        return median(sample / beat for sample, beat in zip(samples, beats, strict=True))
    return median(samples) / median(beats)
