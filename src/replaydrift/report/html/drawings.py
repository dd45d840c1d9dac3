"""Evidence as drawings (inline SVG): who occupied which block, in which order graphs ran, what ran when. Only what a record holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from replaydrift.report.html.text import visible
from replaydrift.values import Value, show

_ADDRESS = re.compile(r"\+?0x[0-9a-f]+")  # As a record stores it: counted from the lowest of the attempt, `0x0` for a null pointer.
_CHAR, _ROW, _PAD = 7.4, 30, 8  # Width of a character of the 12-pixel monospaced face, height of a row, space around text.


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG with the sentence that says what it shows."""

    svg: Markup
    caption: str


def drawings(evidence: Sequence[tuple[str, Value]]) -> list[Drawing]:
    """A drawing for each kind of evidence that can be drawn; the rest is left for the table of `leftover`."""
    drawn = []
    snapshots = [value for step, value in evidence if step == "address" and _is_addresses(value)]
    if snapshots:
        drawn.append(_pool([dict(snapshot) for snapshot in snapshots if isinstance(snapshot, dict)]))
    orders = {step: [str(item) for item in value] for step, value in evidence if _is_order(step, value) and isinstance(value, list)}
    if orders:
        drawn.append(_orders(orders))
    drawn += [_lanes(value) for step, value in evidence if step == "timeline" and _is_timeline(value)]
    return drawn


def leftover(evidence: Sequence[tuple[str, Value]]) -> list[tuple[str, str]]:
    """The evidence that is not drawn, as name and text."""
    return [(visible(step), visible(show(value, 240))) for step, value in evidence if not _is_drawn(step, value)]


def _is_drawn(step: str, value: Value) -> bool:
    return (step == "address" and _is_addresses(value)) or _is_order(step, value) or (step == "timeline" and _is_timeline(value))


def _is_addresses(value: Value) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(at, str) and _ADDRESS.fullmatch(at) for at in value.values())


def _is_order(step: str, value: Value) -> bool:
    return step.endswith("order") and isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _is_timeline(value: Any) -> bool:
    """True for a list of (lane, what, start in ms, end in ms)."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(row, list) and len(row) == 4 and isinstance(row[2], int | float) and isinstance(row[3], int | float) for row in value
        )
    )


def _pool(snapshots: Sequence[Mapping[str, Any]]) -> Drawing:
    """A row a block, lowest address first; names that share a block are marked. Sizes are not recorded, so none is drawn."""
    at: dict[str, dict[str, list[int]]] = {}
    for number, snapshot in enumerate(snapshots, 1):
        for name, address in snapshot.items():
            at.setdefault(address, {}).setdefault(str(name), []).append(number)
    rows = [
        (address, names, [_occupant(name, when, len(snapshots)) for name, when in names.items()])
        for address, names in sorted(at.items(), key=lambda item: int(item[0], 16))
    ]
    label_width = _CHAR * max(len(address) for address in at) + 2 * _PAD
    shared = any(len(names) > 1 for names in at.values())
    width = label_width + max(sum(_width(label) + 6 for label in labels) for _, _, labels in rows) + 2 * _PAD
    if shared:
        width += _CHAR * len("same block") + 2 * _PAD
    svg = _svg(width, _ROW * len(rows) + 4)
    for row, (address, names, labels) in enumerate(rows):
        top = row * _ROW + 2
        _rect(svg, label_width, top, width - label_width - 2, _ROW - 4, "block shared" if len(names) > 1 else "block")
        _text(svg, label_width - _PAD, top + 17, address, "offset", anchor="end")
        left = label_width + 6
        for label in labels:
            _rect(svg, left, top + 4, _width(label), _ROW - 12, "chip")
            _text(svg, left + _PAD, top + 17, label, "name")
            left += _width(label) + 6
        if len(names) > 1:
            _text(svg, width - _PAD - 2, top + 17, "same block", "note", anchor="end")
    together = "; ".join(" and ".join(names) for _, names, _ in rows if len(names) > 1)
    caption = f"One block for {together}." if shared else "Each name has a block of its own."
    if len(snapshots) > 1:
        caption += f" Seen {len(snapshots)} times; a number says in which of them a name was there, none that it always was."
    return Drawing(
        _done(svg, "Addresses and who occupied them"), f"{caption} Addresses are counted from the lowest; sizes are not recorded."
    )


def _occupant(name: str, when: Sequence[int], snapshots: int) -> str:
    """The name, with the numbers of the snapshots in which it was there unless it always was."""
    return name if len(when) == snapshots else f"{name} ({', '.join(str(number) for number in when)})"


def _orders(orders: Mapping[str, Sequence[str]]) -> Drawing:
    """A row of boxes an order; a box is marked where it stands elsewhere than in the first order given."""
    baseline_name, baseline = next(((name, items) for name, items in orders.items() if "capture" in name), next(iter(orders.items())))
    label_width = _CHAR * max(len(name) for name in orders) + 2 * _PAD
    box = max(_width(item) for items in orders.values() for item in items)
    svg = _svg(label_width + (box + 6) * max(len(items) for items in orders.values()) + 4, _ROW * len(orders) + 4)
    moved_any = False
    for row, (name, items) in enumerate(orders.items()):
        top = row * _ROW + 2
        _text(svg, label_width - _PAD, top + 17, name.replace("_", " ").replace("-", " "), "offset", anchor="end")
        for column, item in enumerate(items):
            moved = items is not baseline and (column >= len(baseline) or baseline[column] != item)
            moved_any |= moved
            left = label_width + column * (box + 6)
            _rect(svg, left, top, box, _ROW - 6, "block shared" if moved else "block")
            _text(svg, left + box / 2, top + 16, item, "name", anchor="middle")
    label = baseline_name.replace("_", " ").replace("-", " ")
    if len(orders) == 1:
        return Drawing(_done(svg, "Orders of graphs"), f"The {label} that the case recorded.")
    caption = f"Marked steps stand elsewhere than in the {label}." if moved_any else f"Every step stands where the {label} has it."
    return Drawing(_done(svg, "Orders of graphs"), caption)


def _lanes(rows: Any) -> Drawing:
    """Bars to scale in one lane a kind of worker (CPU, GPU), from recorded times in milliseconds."""
    lanes = list(dict.fromkeys(str(row[0]) for row in rows))
    first, last = min(row[2] for row in rows), max(row[3] for row in rows)
    scale = 440 / max(last - first, 1e-9)
    label_width = _CHAR * max(len(lane) for lane in lanes) + 2 * _PAD
    svg = _svg(label_width + 460, (_ROW + 4) * len(lanes) + 26)
    for lane, what, start, end in rows:
        top = lanes.index(str(lane)) * (_ROW + 4) + 2
        left, wide = label_width + (start - first) * scale, max((end - start) * scale, 3)
        _rect(svg, left, top, wide, _ROW - 4, f"bar lane{lanes.index(str(lane)) % 2}", title=f"{what}: {start:g} to {end:g} ms")
        if wide >= _width(str(what)):
            _text(svg, left + wide / 2, top + 17, str(what), "name", anchor="middle")
    for number, lane in enumerate(lanes):
        _text(svg, label_width - _PAD, number * (_ROW + 4) + 19, lane, "offset", anchor="end")
    bottom = (_ROW + 4) * len(lanes) + 18
    _text(svg, label_width, bottom, f"{first:g}", "offset")
    _text(svg, label_width + 440, bottom, f"{last:g} ms", "offset", anchor="end")
    return Drawing(_done(svg, "What ran when"), "To scale, from the times that the case recorded; short ones are drawn three pixels wide.")


def _width(text: str) -> float:
    return _CHAR * len(text) + 2 * _PAD


def _svg(width: float, height: float) -> ET.Element:
    return ET.Element("svg", {
        "viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}", "height": f"{height:.0f}", "role": "img", "class": "drawing",
    })  # fmt: skip


def _rect(svg: ET.Element, left: float, top: float, width: float, height: float, kind: str, title: str = "") -> None:
    place = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}", "rx": "3", "class": kind}
    node = ET.SubElement(svg, "rect", place)
    if title:
        ET.SubElement(node, "title").text = visible(title)


def _text(svg: ET.Element, left: float, top: float, text: str, kind: str, anchor: str = "start") -> None:
    node = ET.SubElement(svg, "text", {"x": f"{left:.1f}", "y": f"{top:.1f}", "class": kind, "text-anchor": anchor})
    node.text = visible(text)


def _done(svg: ET.Element, label: str) -> Markup:
    svg.set("aria-label", label)
    return Markup(ET.tostring(svg, encoding="unicode", short_empty_elements=False))  # noqa: S704  (the writer escapes)
