"""A cost over releases as a small plot (inline SVG): a point a release, a bar for its interval, a line within each block only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from xml.etree import ElementTree as ET

from markupsafe import Markup

from replaydrift import releases
from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.paths import tag

WIDTH, HEIGHT = 420, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 12, 12, 24


def units(metric: str) -> str:
    """The unit that ends a metric's name: `ms` of `capture_ms`; the name's last word where it has none of ours."""
    return {"ms": "ms", "us": "µs", "bytes": "bytes", "waste": "share"}.get(metric.rsplit("_", 1)[-1], "")


def shown(value: float, metric: str) -> str:
    """The number with at most four digits; bytes in KiB or MiB, since nobody reads millions of bytes."""
    size, name = _scale(value, metric)
    return f"{value / size:.4g} {name}".strip()


def _scale(value: float, metric: str) -> tuple[int, str]:
    """What to divide such a value by, and the name of the unit it is then in."""
    sizes = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if metric.endswith("bytes") else ()
    return next(((size, name) for size, name in sizes if abs(value) >= size), (1, ""))


def _ticks(base: float, highest: float, scale: float) -> list[float]:
    """Three to six numbers, round in units of `scale`, from `base` to `highest` or a little above it."""
    span = (highest - base) / scale or 1.0
    unit = 10 ** math.floor(math.log10(span))
    step = next(unit * factor for factor in (0.2, 0.5, 1, 2, 5) if span / (unit * factor) <= 5)
    return [base + step * scale * number for number in range(math.ceil(span / step - 1e-9) + 1)]


def interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Lowest, median and highest of the processes' numbers."""
    return min(samples), median(samples), max(samples)


def plot(costs: Iterable[Cost]) -> Markup:
    """The plot of one metric of one case on one machine; costs compare within a block, so no line joins two blocks."""
    costs = [cost for cost in costs if cost.samples]
    names = sorted({cost.release for cost in costs}, key=releases.order)
    lowest, highest = min(min(cost.samples) for cost in costs), max(max(cost.samples) for cost in costs)
    base, ticks = min(lowest, 0.0), _ticks(min(lowest, 0.0), highest, _scale(highest, costs[0].metric)[0])
    span = ticks[-1] - base
    step = (WIDTH - _LEFT - _RIGHT) / max(len(names), 1)

    def across(release: str) -> float:
        return _LEFT + step * (names.index(release) + 0.5)

    def down(value: float) -> float:
        return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - (value - base) / span)

    svg = ET.Element(
        "svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": str(WIDTH), "height": str(HEIGHT), "role": "img", "class": "plot"}
    )
    first = costs[0]
    between = f"{shown(lowest, first.metric)} to {shown(highest, first.metric)} {units(first.metric)}".strip()
    svg.set("aria-label", f"{first.metric} of {first.case} over {len(names)} releases, {between}")
    for value in ticks:
        _line(svg, _LEFT, down(value), WIDTH - _RIGHT, down(value), "grid")
        _label(svg, _LEFT - 6, down(value) + 4, shown(value, first.metric), "end")
    every = max(1, round(len(names) * 46 / (WIDTH - _LEFT - _RIGHT) + 0.49))
    for number, name in enumerate(names):
        if number % every == 0:
            _label(svg, across(name), HEIGHT - 6, tag(name), "middle")
    for number, block in enumerate(sorted({cost.block for cost in costs})):
        own = sorted((cost for cost in costs if cost.block == block), key=lambda cost: releases.order(cost.release))
        points = " ".join(f"{across(cost.release):.1f},{down(median(cost.samples)):.1f}" for cost in own)
        ET.SubElement(svg, "polyline", {"points": points, "class": f"series block{number % 3}"})
        for cost in own:
            low, middle, high = interval(cost.samples)
            _line(svg, across(cost.release), down(low), across(cost.release), down(high), f"whisker block{number % 3}")
            dot = ET.SubElement(
                svg,
                "circle",
                {"cx": f"{across(cost.release):.1f}", "cy": f"{down(middle):.1f}", "r": "3.5", "class": f"dot block{number % 3}"},
            )
            ET.SubElement(
                dot, "title"
            ).text = f"{cost.release}: {middle:.4g} ({low:.4g} to {high:.4g}, {len(cost.samples)} processes), block {block}"
    return Markup(ET.tostring(svg, encoding="unicode", short_empty_elements=False))  # noqa: S704  (the writer escapes)


def _line(svg: ET.Element, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
    ET.SubElement(svg, "line", {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}", "class": kind})


def _label(svg: ET.Element, x: float, y: float, text: str, anchor: str) -> None:
    ET.SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": "tick"}).text = text
