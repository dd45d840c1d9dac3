"""What plots need beyond the parts of drawings: round numbers for their axes, paths, and dots that say what they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from replaydrift.report.html import svg
from replaydrift.report.html.text import visible


def empty_plot(width: float, height: float) -> ET.Element:
    """An empty plot of so many pixels."""
    made = svg.canvas(width, height)
    made.set("class", "plot")
    return made


def path(plot: ET.Element, points: Iterable[tuple[float, float]], kind: str) -> None:
    """Add straight lines from point to point."""
    ET.SubElement(plot, "polyline", {"points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points), "class": kind})


def dot(plot: ET.Element, x: float, y: float, kind: str, title: str) -> None:
    """Add a small circle; `title` is what a pointer over it is told."""
    node = ET.SubElement(plot, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "3.5", "class": f"dot {kind}"})
    ET.SubElement(node, "title").text = visible(title)


def ticks(base: float, highest: float, unit: float = 1.0) -> list[float]:
    """Three to six numbers, round in units of `unit`, from `base` to `highest` or a little above it."""
    span = (highest - base) / unit or 1.0
    power = 10 ** math.floor(math.log10(span))
    step = next(power * factor for factor in (0.2, 0.5, 1, 2, 5) if span / (power * factor) <= 5)
    return [base + step * unit * number for number in range(math.ceil(span / step - 1e-9) + 1)]


def decades(lowest: float, highest: float) -> list[float]:
    """The powers of ten from the last one below `lowest` to the first one above `highest`, both above zero; two at least."""
    first, last = math.floor(math.log10(lowest) + 1e-9), math.ceil(math.log10(highest) - 1e-9)
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]
