"""An A/A run for a person: false alarms, then what each headline metric's noise allows, with its power curve as a row of a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.costs.calibration import PLANTED, TARGET, TARGETED, Calibration, Noise, Planted
from replaydrift.costs.statistics import ALPHA, POWER
from replaydrift.report.cost_words import quantity


def percent(share: float, digits: int = 1) -> str:
    """A share or a change as `1.5 %`."""
    return f"{100 * share:.{digits}f} %"


def print_calibration(found: Calibration, console: Console) -> None:
    """Print the rates first, then every headline metric, then the noisiest of the rest."""
    console.print(Text(f"torch {found.release} against itself, block {found.block}: {found.visits} visits, {found.splits} splits into two "
                       f"sides of {found.side}", style="bold"))  # fmt: skip
    console.print(Text(_alarms(found), style="green" if found.calibrated else "bold red"))
    table = Table("share of splits with any flag", "with margins", "with none", "nominal", box=None, pad_edge=False, header_style="bold")
    for name in ("gate", "listed"):
        words = {"gate": "in the gate (Holm)", "listed": "in the list (Benjamini–Hochberg)"}
        table.add_row(words[name], *(percent(getattr(pair, name)) for pair in (found.with_margins, found.without_margins)), percent(ALPHA))
    console.print(table)
    console.print(Text(_power(found), style="green" if found.sharp else "bold red"))
    headlines = sorted((one for one in found.noise if one.headline), key=lambda one: (one.metric, one.subject))
    if headlines:
        console.print()
        console.print(_noise(headlines))
        console.print(Text("\nShare of splits that find a planted slow-down:", style="bold"))
        console.print(_curves(headlines))
    others = sorted((one for one in found.noise if not one.headline), key=lambda one: -one.sd)
    if others:
        console.print(Text(f"\n{len(others)} metrics are in the list; the noisiest of each name:", style="dim"))
        console.print(_list(others))
    if found.left_out:
        console.print(Text(f"{found.left_out} metric(s) that some visit lacks are left out.", style="dim"))


def _alarms(found: Calibration) -> str:
    if found.calibrated:
        return "Nothing changed, and the gate says so: no share of false alarms lies above the nominal rate."
    return "Nothing changed, and flags are raised more often than they may be: widen margins, or measure with less noise."


def _power(found: Calibration) -> str:
    metrics = " and ".join(TARGETED)
    if found.power is None:
        return f"No headline metric {metrics} was measured: whether {percent(TARGET, 0)} more would be found, nobody can tell."
    return f"Of planted slow-downs of {percent(TARGET, 0)} in {metrics}, {percent(found.power)} are found; {percent(POWER, 0)} must be."


def _noise(noise: Sequence[Noise]) -> Table:
    """A row a headline metric: how much its value varies between visits, and would without the host's pace taken out, between neighbours,
    and with other numbers than medians; its margin, the margin that this noise needs, and how often it is called the same.
    """
    columns = "subject", "metric", "median", "noise", "unpaced", "neighbours", "quartiles", "lowest", "margin", "needs", "called same"
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for one in noise:
        every = one.sd, one.sd_plain, one.adjacent, one.sd_quartile, one.sd_lowest
        spreads = [f"{100 * spread:.2f} %" if spread is not None else "" for spread in every]
        margins = percent(one.margin), percent(one.needed_margin), percent(one.same, 0)
        table.add_row(one.subject, one.metric, quantity(one.median, one.metric), *spreads, *margins)
    return table


def _curves(noise: Sequence[Noise]) -> Table:
    """A row a headline metric, its power curve: the smallest change that is found, and how often each planted slow-down is found."""
    planted = [f"{percent(change, 0)} more" for change in PLANTED]
    table = Table("subject", "metric", "smallest found", *planted, box=None, pad_edge=False, header_style="bold")
    for one in noise:
        table.add_row(one.subject, one.metric, percent(one.smallest), *(percent(share, 0) for share in one.found))
    return table


def _list(noise: Sequence[Noise]) -> Table:
    """The noisiest subject of each metric that the gate does not ask about."""
    table = Table("metric", "subject", "noise", "margin", "needs", box=None, pad_edge=False, header_style="bold")
    worst: dict[str, Noise] = {}
    for one in noise:
        worst.setdefault(one.metric, one)
    for metric, one in sorted(worst.items()):
        table.add_row(metric, one.subject, percent(one.sd, 2), percent(one.margin), percent(one.needed_margin))
    return table


def print_planted(tests: Sequence[Planted], block: str, console: Console) -> None:
    """Print what the gate finds between the run and a block with planted slow-downs, the most often found first."""
    console.print(Text(f"\nAgainst block {block}, in which some subjects were slowed down on purpose (the others are the control):", style="bold"))
    table = Table("subject", "metric", "ratio of medians", "found in splits", box=None, pad_edge=False, header_style="bold")
    for one in sorted(tests, key=lambda one: (-one.found, -one.ratio)):
        table.add_row(one.subject, one.metric, f"× {one.ratio:.3f}", percent(one.found, 0))
    console.print(table)
