"""Charts of one release's costs: lines against size, bars of policies, and after how many replays a capture has paid for itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from replaydrift.report.html.axes import decades, dot, empty_plot, path, ticks
from replaydrift.report.html.numbers import scale, shown, with_unit
from replaydrift.report.html.svg import CHAR, drawn, line, rectangle, words

Interval = tuple[float, float, float]  # Its lower end, the median, its upper end.

WIDTH = 470
_LEFT, _TOP, _BOTTOM = 70, 12, 38
_LINE = 15  # The height of a line of text.


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a chart of bars or of dots; `value` is None where there is no number, and `note` says why."""

    name: str
    value: Interval | None
    note: str = ""


def against_size(lines: Mapping[str, Mapping[int, Interval]], label: str, across: str) -> Markup:
    """Each line's values, in microseconds, over sizes; both axes logarithmic. What is not above zero cannot be kept on them."""
    kept = {name: {size: at for size, at in points.items() if at[0] > 0} for name, points in lines.items()}
    kept = {name: points for name, points in kept.items() if points}
    if not kept:
        return Markup("")
    sizes = sorted({size for points in kept.values() for size in points})
    values = [end for points in kept.values() for at in points.values() for end in at]
    rows = decades(min(values), max(values))
    left_most, right_most = math.log10(sizes[0]), math.log10(sizes[-1])
    right = WIDTH - CHAR * max(map(len, kept)) - 14
    height = 260
    plot = empty_plot(WIDTH, height)
    label = f"{label}, from {min(values):.3g} to {max(values):.3g} µs, over {across} from {sizes[0]} to {sizes[-1]}"

    def x(size: int) -> float:
        return _LEFT + 10 + (right - _LEFT - 20) * ((math.log10(size) - left_most) / (right_most - left_most or 1))

    def y(value: float) -> float:
        share = (math.log10(value) - math.log10(rows[0])) / (math.log10(rows[-1]) - math.log10(rows[0]))
        return _TOP + (height - _TOP - _BOTTOM) * (1 - share)

    for value in rows:
        line(plot, (_LEFT, y(value)), (right, y(value)), "grid")
        words(plot, _LEFT - 6, y(value) + 4, _time(value), "tick", "end")
    for size in sizes:
        words(plot, x(size), height - _BOTTOM + 16, f"{size:,}", "tick", "middle")
    words(plot, (_LEFT + right) / 2, height - 5, across, "tick", "middle")
    for number, (name, points) in enumerate(kept.items()):
        kind = f"line{number % 6}"
        ordered = sorted(points.items())
        path(plot, [(x(size), y(at[1])) for size, at in ordered], f"series {kind}")
        for size, (low, middle, high) in ordered:
            line(plot, (x(size), y(low)), (x(size), y(high)), f"whisker {kind}")
            dot(plot, x(size), y(middle), kind, f"{name}, {size:,} {across}: {_time(middle)} ({_time(low)} to {_time(high)})")
    ends = {name: y(points[max(points)][1]) for name, points in kept.items()}
    for name, place in _apart(ends, _TOP, height - _BOTTOM).items():
        words(plot, right + 8, place + 4, name, f"name line{list(kept).index(name) % 6}")
    return drawn(plot, label)


def bars(rows: Sequence[Row], metric: str, label: str) -> Markup:
    """A bar a row from zero to its median, with its interval, its number and its note."""
    values = [row.value for row in rows if row.value]
    if not values:
        return Markup("")
    left = CHAR * max(len(row.name) for row in rows) + 14
    texts = [", ".join(part for part in (with_unit(row.value[1], metric) if row.value else "–", row.note) if part) for row in rows]
    right = WIDTH - CHAR * max(map(len, texts)) - 12
    right = max(right, left + 90)
    highest = max(high for _, _, high in values)
    marks = ticks(0.0, highest, scale(highest, metric)[0])
    height = _TOP + (_LINE + 7) * len(rows)
    width = max(WIDTH, right + 12 + CHAR * max(map(len, texts)))
    plot = empty_plot(width, height + 22)
    label = f"{label}: {', '.join(f'{row.name} {text}' for row, text in zip(rows, texts, strict=True))}"

    def x(value: float) -> float:
        return left + (right - left) * value / marks[-1]

    shown_marks = marks if (right - left) / len(marks) > 50 else [marks[0], marks[-1]]
    for value in marks:
        line(plot, (x(value), _TOP - 4), (x(value), height), "grid")
    for value in shown_marks:
        words(plot, x(value), height + 16, shown(value, metric), "tick", "middle")
    for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
        top = _TOP + (_LINE + 7) * number
        words(plot, left - 8, top + 12, row.name, "name", "end")
        end = left
        if row.value:
            low, middle, high = row.value
            title = f"{row.name}: {with_unit(middle, metric)} ({shown(low, metric)} to {shown(high, metric)})"
            rectangle(plot, left, top, max(x(middle) - left, 1.0), _LINE, "amount", title)
            line(plot, (x(low), top + _LINE / 2), (x(high), top + _LINE / 2), "whisker ink")
            end = x(high)
        words(plot, max(end, left) + 7, top + 12, text, "tick")
    return drawn(plot, label)


def paid_after(rows: Sequence[Row], label: str) -> Markup:
    """A dot a row on a logarithmic axis of replays, with its interval; a row without a value says why in its note."""
    values = [row.value for row in rows if row.value and row.value[0] > 0]
    if not values:
        return Markup("")
    left, right = CHAR * max(len(row.name) for row in rows) + 14, WIDTH - 16.0
    marks = decades(min(low for low, _, _ in values), max(high for _, _, high in values))
    height = _TOP + (_LINE + 5) * len(rows)
    texts = {row.name: f"{row.value[1]:,.0f}" if row.value else row.note for row in rows}
    plot = empty_plot(WIDTH, height + 38)
    label = f"{label}: {', '.join(f'{name} {text}' for name, text in texts.items())}"

    def x(value: float) -> float:
        share = (math.log10(value) - math.log10(marks[0])) / (math.log10(marks[-1]) - math.log10(marks[0]))
        return left + 6 + (right - left - 6) * share

    for value in marks:
        line(plot, (x(value), _TOP - 4), (x(value), height), "grid")
        words(plot, x(value), height + 16, f"{value:,.0f}" if value >= 1 else f"{value:g}", "tick", "middle")
    words(plot, (left + right) / 2, height + 33, "replays", "tick", "middle")
    for number, row in enumerate(rows):
        middle_of_row = _TOP + (_LINE + 5) * number + 8
        words(plot, left - 8, middle_of_row + 4, row.name, "name", "end")
        if row.value and row.value[0] > 0:
            low, middle, high = row.value
            line(plot, (x(low), middle_of_row), (x(high), middle_of_row), "whisker line0")
            dot(plot, x(middle), middle_of_row, "line0", f"{row.name}: {middle:,.0f} replays ({low:,.0f} to {high:,.0f})")
            beside = x(high) + 8 + CHAR * len(texts[row.name]) < WIDTH
            words(plot, x(high) + 8 if beside else x(low) - 8, middle_of_row + 4, texts[row.name], "tick", "start" if beside else "end")
        else:
            words(plot, left + 12, middle_of_row + 4, row.note, "tick")
    return drawn(plot, label)


def _apart(places: Mapping[str, float], top: float, bottom: float) -> dict[str, float]:
    """The places moved as little as it takes to stand a line of text apart, the last of them not below the bottom."""
    moved: dict[str, float] = {}
    last = top - _LINE
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        last = moved[name] = max(place, last + _LINE)
    limit = bottom
    for name in reversed(moved):
        moved[name] = min(moved[name], limit)
        limit = moved[name] - _LINE
    return moved


def _time(us: float) -> str:
    """Microseconds in the unit that leaves few digits."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} µs"
