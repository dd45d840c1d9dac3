"""A cost over releases as a small plot: a point a release, a bar for its interval, a line within each block only."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from markupsafe import Markup

from replaydrift import releases
from replaydrift.report.html.axes import dot, empty_plot, path, ticks
from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.numbers import interval, scale, shown, with_unit
from replaydrift.report.html.paths import tag
from replaydrift.report.html.svg import drawn, line, words

WIDTH, HEIGHT = 420, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 12, 12, 24


def plot(costs: Iterable[Cost]) -> Markup:
    """The plot of one metric of one subject on one machine; costs compare within a block, so no line joins two blocks."""
    costs = [cost for cost in costs if cost.samples]
    first, names = costs[0], sorted({cost.release for cost in costs}, key=releases.order)
    lowest, highest = min(min(cost.samples) for cost in costs), max(max(cost.samples) for cost in costs)
    base = min(lowest, 0.0)
    marks = ticks(base, highest, scale(highest, first.metric)[0])
    step = (WIDTH - _LEFT - _RIGHT) / len(names)

    def across(release: str) -> float:
        return _LEFT + step * (names.index(release) + 0.5)

    def down(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (value - base) / (marks[-1] - base))

    between = with_unit(lowest, first.metric) if lowest == highest else f"{shown(lowest, first.metric)} to {with_unit(highest, first.metric)}"
    drawing = empty_plot(WIDTH, HEIGHT)
    label = f"{first.metric} of {first.subject} over {len(names)} release{'s' * (len(names) != 1)}, {between}"
    for value in marks:
        line(drawing, (_LEFT, down(value)), (WIDTH - _RIGHT, down(value)), "grid")
        words(drawing, _LEFT - 6, down(value) + 4, shown(value, first.metric), "tick", "end")
    every = max(1, round(len(names) * 46 / (WIDTH - _LEFT - _RIGHT) + 0.49))
    for name in names[::every]:
        words(drawing, across(name), HEIGHT - 6, tag(name), "tick", "middle")
    for number, block in enumerate(sorted({cost.block for cost in costs})):
        own = sorted((cost for cost in costs if cost.block == block), key=lambda cost: releases.order(cost.release))
        path(drawing, [(across(cost.release), down(median(cost.samples))) for cost in own], f"series block{number % 3}")
        for cost in own:
            low, middle, high = interval(cost.samples)
            line(drawing, (across(cost.release), down(low)), (across(cost.release), down(high)), f"whisker block{number % 3}")
            several = f" ({shown(low, cost.metric)} to {shown(high, cost.metric)}, {len(cost.samples)} processes)"
            title = f"{cost.release}: {with_unit(middle, cost.metric)}{several if low != high else ''}, block {block}"
            dot(drawing, across(cost.release), down(middle), f"block{number % 3}", title)
    return drawn(drawing, label)
