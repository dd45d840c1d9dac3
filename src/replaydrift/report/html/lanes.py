"""Two lanes for what ran behind the CPU's back: which of the CPU's steps the value belongs to that the GPU showed at each step.

Made from a strip alone. A record has no times, so there is order in the drawing, and no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replaydrift.report.html.svg import CHAR, PAD, Drawing, box_width, canvas, drawn, line, rectangle, words
from replaydrift.report.html.text import visible
from replaydrift.strip import Cell, Missing
from replaydrift.values import Value, equal, show

ASYNC: Final = "async replay"
_LANES: Final = ("CPU asked for", "GPU gave")
_BOX, _GAP, _BETWEEN = 30, 14, 46


def lanes(mechanism: str, strip: Sequence[Cell], tolerance: float = 0.0) -> Drawing | None:
    """The two lanes of a strip, or None where they would say nothing: another mechanism, no step that shows another step's value."""
    if mechanism != ASYNC or not strip:
        return None
    sources = [_source(cell, place, strip, tolerance) for place, cell in enumerate(strip)]
    if None in sources or not any(source != place for place, source in enumerate(sources)):
        return None
    texts = [[_text(cell.correct) for cell in strip], [_text(cell.observed) for cell in strip]]
    box = max(box_width(text) for row in texts for text in row)
    label = CHAR * max(map(len, _LANES)) + 2 * PAD
    svg = canvas(label + (box + _GAP) * len(strip), 2 * _BOX + _BETWEEN + 4)
    for place, source in enumerate(sources):
        below, above = (label + column * (box + _GAP) + box / 2 for column in (place, source or 0))
        kind = "link" if source == place else "link astray"
        line(svg, (above, _BOX + 2), (below, _BOX + _BETWEEN + 2), kind)
    for row, name in enumerate(_LANES):
        top = 2 + row * (_BOX + _BETWEEN)
        words(svg, label - PAD, top + 19, name, "offset", anchor="end")
        for place, text in enumerate(texts[row]):
            left = label + place * (box + _GAP)
            astray = row == 1 and sources[place] != place
            rectangle(svg, left, top, box, _BOX, "block shared" if astray else "block")
            words(svg, left + box / 2, top + 19, text, "name", anchor="middle")
    late = [place + 1 for place, source in enumerate(sources) if source != place]
    caption = (
        f"A line joins what the GPU gave to the CPU's step that it belongs to. {_counted(late)} the value of another one. "
        "In order, not to scale: a record has no times."
    )
    return Drawing(drawn(svg, "What the CPU asked for and what the GPU gave"), caption)


def _source(cell: Cell, place: int, strip: Sequence[Cell], tolerance: float) -> int | None:
    """The step whose right value this one shows: its own where that fits, else the only other; None where none or several fit."""
    if isinstance(cell.observed, Missing) or isinstance(cell.correct, Missing):
        return None
    if not cell.differs(tolerance):
        return place
    fits = [
        other for other, there in enumerate(strip) if not isinstance(there.correct, Missing) and equal(cell.observed, there.correct, tolerance)
    ]
    return fits[0] if len(fits) == 1 else None


def _text(value: Value | Missing) -> str:
    return "nothing" if isinstance(value, Missing) else visible(show(value, 14))


def _counted(steps: Sequence[int]) -> str:
    return f"Step {steps[0]} shows" if len(steps) == 1 else f"Steps {', '.join(map(str, steps))} show"
