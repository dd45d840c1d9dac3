"""What drawings are made of: a canvas, boxes and words, in a monospaced face whose widths are known."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as ET

from markupsafe import Markup

from replaydrift.report.html.text import visible

CHAR, ROW, PAD = 7.4, 30, 8  # Width of a character of the 12-pixel monospaced face, height of a row, space around text.


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG with the sentence that says what it shows."""

    svg: Markup
    caption: str


def box_width(text: str) -> float:
    """Pixels that a box with this text in it takes."""
    return CHAR * len(text) + 2 * PAD


def canvas(width: float, height: float) -> ET.Element:
    """An empty drawing of so many pixels."""
    return ET.Element("svg", {
        "viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}", "height": f"{height:.0f}", "role": "img", "class": "drawing",
    })  # fmt: skip


def rectangle(svg: ET.Element, left: float, top: float, width: float, height: float, kind: str, title: str = "") -> None:
    """Add a box; `kind` is its class, `title` what a pointer over it is told."""
    place = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}", "rx": "3", "class": kind}
    node = ET.SubElement(svg, "rect", place)
    if title:
        ET.SubElement(node, "title").text = visible(title)


def line(svg: ET.Element, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
    """Add a line from one point to another."""
    (x1, y1), (x2, y2) = start, end
    ET.SubElement(svg, "line", {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}", "class": kind})


def words(svg: ET.Element, left: float, top: float, text: str, kind: str, anchor: str = "start") -> None:
    """Add a text on the base line `top`, made visible and harmless."""
    node = ET.SubElement(svg, "text", {"x": f"{left:.1f}", "y": f"{top:.1f}", "class": kind, "text-anchor": anchor})
    node.text = visible(text)


def drawn(svg: ET.Element, label: str) -> Markup:
    """The finished drawing as markup; `label` is what a screen reader says."""
    svg.set("aria-label", label)
    return Markup(ET.tostring(svg, encoding="unicode", short_empty_elements=False))  # noqa: S704  (the writer escapes)
