"""Evidence as drawings (inline SVG): who occupied which block, in which order graphs ran, what ran when. Only what a record holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from replaydrift.report.html.svg import CHAR, PAD, ROW, Drawing, box_width, canvas, drawn, rectangle, words
from replaydrift.report.html.text import visible
from replaydrift.values import Value, show

_ADDRESS = re.compile(r"\+?0x[0-9a-f]+")  # As a record stores it: counted from the lowest of the attempt, `0x0` for a null pointer.


def drawings(evidence: Sequence[tuple[str, Value]]) -> list[Drawing]:
    """A drawing for each kind of evidence that can be drawn; the rest is left for the table of `leftover`."""
    made = []
    snapshots = [value for step, value in evidence if step == "address" and _is_addresses(value)]
    if snapshots:
        made.append(_pool([dict(snapshot) for snapshot in snapshots if isinstance(snapshot, dict)]))
    orders = {step: [str(item) for item in value] for step, value in evidence if _is_order(step, value) and isinstance(value, list)}
    if orders:
        made.append(_orders(orders))
    made += [_timeline(value) for step, value in evidence if step == "timeline" and _is_timeline(value)]
    return made


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
    label_width = CHAR * max(len(address) for address in at) + 2 * PAD
    shared = any(len(names) > 1 for names in at.values())
    width = label_width + max(sum(box_width(label) + 6 for label in labels) for _, _, labels in rows) + 2 * PAD
    if shared:
        width += CHAR * len("same block") + 2 * PAD
    svg = canvas(width, ROW * len(rows) + 4)
    for row, (address, names, labels) in enumerate(rows):
        top = row * ROW + 2
        rectangle(svg, label_width, top, width - label_width - 2, ROW - 4, "block shared" if len(names) > 1 else "block")
        words(svg, label_width - PAD, top + 17, address, "offset", anchor="end")
        left = label_width + 6
        for label in labels:
            rectangle(svg, left, top + 4, box_width(label), ROW - 12, "chip")
            words(svg, left + PAD, top + 17, label, "name")
            left += box_width(label) + 6
        if len(names) > 1:
            words(svg, width - PAD - 2, top + 17, "same block", "note", anchor="end")
    together = "; ".join(" and ".join(names) for _, names, _ in rows if len(names) > 1)
    caption = f"One block for {together}." if shared else "Each name has a block of its own."
    if len(snapshots) > 1:
        caption += f" Seen {len(snapshots)} times; a number says in which of them a name was there, none that it always was."
    return Drawing(
        drawn(svg, "Addresses and who occupied them"), f"{caption} Addresses are counted from the lowest; sizes are not recorded."
    )


def _occupant(name: str, when: Sequence[int], snapshots: int) -> str:
    """The name, with the numbers of the snapshots in which it was there unless it always was."""
    return name if len(when) == snapshots else f"{name} ({', '.join(str(number) for number in when)})"


def _orders(orders: Mapping[str, Sequence[str]]) -> Drawing:
    """A row of boxes an order; a box is marked where it stands elsewhere than in the first order given."""
    baseline_name, baseline = next(((name, items) for name, items in orders.items() if "capture" in name), next(iter(orders.items())))
    label_width = CHAR * max(len(name) for name in orders) + 2 * PAD
    box = max(box_width(item) for items in orders.values() for item in items)
    svg = canvas(label_width + (box + 6) * max(len(items) for items in orders.values()) + 4, ROW * len(orders) + 4)
    moved_any = False
    for row, (name, items) in enumerate(orders.items()):
        top = row * ROW + 2
        words(svg, label_width - PAD, top + 17, name.replace("_", " ").replace("-", " "), "offset", anchor="end")
        for column, item in enumerate(items):
            moved = items is not baseline and (column >= len(baseline) or baseline[column] != item)
            moved_any |= moved
            left = label_width + column * (box + 6)
            rectangle(svg, left, top, box, ROW - 6, "block shared" if moved else "block")
            words(svg, left + box / 2, top + 16, item, "name", anchor="middle")
    label = baseline_name.replace("_", " ").replace("-", " ")
    if len(orders) == 1:
        return Drawing(drawn(svg, "Orders of graphs"), f"The {label} that the case recorded.")
    caption = f"Marked steps stand elsewhere than in the {label}." if moved_any else f"Every step stands where the {label} has it."
    return Drawing(drawn(svg, "Orders of graphs"), caption)


def _timeline(rows: Any) -> Drawing:
    """Bars to scale in one lane a kind of worker (CPU, GPU), from recorded times in milliseconds."""
    lanes = list(dict.fromkeys(str(row[0]) for row in rows))
    first, last = min(row[2] for row in rows), max(row[3] for row in rows)
    scale = 440 / max(last - first, 1e-9)
    label_width = CHAR * max(len(lane) for lane in lanes) + 2 * PAD
    svg = canvas(label_width + 460, (ROW + 4) * len(lanes) + 26)
    for lane, what, start, end in rows:
        top = lanes.index(str(lane)) * (ROW + 4) + 2
        left, wide = label_width + (start - first) * scale, max((end - start) * scale, 3)
        rectangle(svg, left, top, wide, ROW - 4, f"bar lane{lanes.index(str(lane)) % 2}", title=f"{what}: {start:g} to {end:g} ms")
        if wide >= box_width(str(what)):
            words(svg, left + wide / 2, top + 17, str(what), "name", anchor="middle")
    for number, lane in enumerate(lanes):
        words(svg, label_width - PAD, number * (ROW + 4) + 19, lane, "offset", anchor="end")
    bottom = (ROW + 4) * len(lanes) + 18
    words(svg, label_width, bottom, f"{first:g}", "offset")
    words(svg, label_width + 440, bottom, f"{last:g} ms", "offset", anchor="end")
    return Drawing(drawn(svg, "What ran when"), "To scale, from the times that the case recorded; short ones are drawn three pixels wide.")
