"""Costs in words and numbers, the same in every form of a check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import floor, log10

from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.costs.metrics import METRICS
from replaydrift.explanations import Explanation

# What each answer is called above a list of costs.
COST_HEADINGS = {
    "changed": "Costs more or less",
    "cannot-tell": "Costs that cannot be told",
    "missing": "Costs not measured on both releases",
    "not-comparable": "Costs that do not compare",
}
_UNITS = {"us": "µs"}
# Of costs that one cause moved so many are listed: the rest say the same again.
LISTED = 6


def quantity(value: float, metric: str) -> str:
    """The number with four digits and its unit, such as `1,115 µs`; counts and bytes in full."""
    unit = METRICS[metric].unit
    digits = 0 if METRICS[metric].exact or value <= 0 else max(0, 3 - floor(log10(value)))
    return f"{value:,.{digits}f} {_UNITS.get(unit, unit)}".rstrip()


def percent(change: float) -> str:
    """A change as `4.2 %`, a large one as `120 %`."""
    return f"{100 * change:.{1 if change < 0.1 else 0}f} %"


def said(finding: CostFinding, check: CostCheck) -> str:
    """What became of a cost in a line: both sides with their ratio and interval, or why nothing can be said."""
    if finding.why:
        return finding.why
    if finding.before is None or finding.after is None:
        return ""
    text = f"{quantity(finding.before, finding.metric)} → {quantity(finding.after, finding.metric)}"
    comparison = finding.comparison
    if comparison is not None:
        text += f", × {comparison.ratio:.3f} ({comparison.low:.3f} to {comparison.high:.3f})"
    if finding.answer == "cannot-tell" and finding.smallest is not None and comparison is not None:
        text += f"; {percent(finding.smallest)} or more would have been seen, up to {percent(comparison.margin)} does not matter"
    if finding.answer == "changed" and check.toolkits[0] != check.toolkits[1]:
        text += f"; CUDA {check.toolkits[0] or 'none'} → {check.toolkits[1] or 'none'}"
    return text


def circumstances(check: CostCheck) -> str:
    """Where the costs come from and what was compared, in a sentence or two; what keeps times from being compared comes first."""
    if check.problem:
        return f"Times cannot be compared: {check.problem}. Measure both in one block: replaydrift measure --python … --python …"
    text = f"Block {check.block}, {check.processes[0]} and {check.processes[1]} processes"
    if not check.block:
        text = f"Counts alone, {check.processes[0]} and {check.processes[1]} processes"
    if check.family:
        text += f"; {check.family} times in the gate"
    if check.toolkits[0] != check.toolkits[1]:
        text += f"; CUDA {check.toolkits[0] or 'none'} → {check.toolkits[1] or 'none'}"
    if check.pending:
        text += f"; unfinished, {check.pending} visits are still to be made"
    return text + "."


def listed(check: CostCheck) -> list[tuple[str, list[CostFinding]]]:
    """The answers that occur, each with the findings that a person reads: all changes, and of the rest what the gate asks about."""
    found = []
    for answer in COST_HEADINGS:
        own = [finding for finding in check.findings if finding.answer == answer and (answer == "changed" or finding.headline)]
        if own:
            found.append((answer, own))
    return found


Cause = tuple[tuple[Explanation, ...], list[CostFinding]]


def by_cause(findings: Iterable[CostFinding], explained: Mapping[str, tuple[Explanation, ...]]) -> list[Cause]:
    """The findings in their order, those that the same entries explain together; what nothing explains comes first, since it is read."""
    groups: dict[tuple[str, ...], Cause] = {}
    for finding in findings:
        entries = explained.get(finding.name, ())
        groups.setdefault(tuple(entry.why for entry in entries), (entries, []))[1].append(finding)
    return sorted(groups.values(), key=lambda group: bool(group[0]))


def remainder(check: CostCheck) -> str:
    """What is not listed, in numbers: shown to be the same, and of the long list what nobody can tell."""
    shown = {finding.name for _, own in listed(check) for finding in own}
    rest = sum(finding.answer != "same" and finding.name not in shown for finding in check.findings)
    text = f"{check.same} cost(s) are the same within their margins."
    return f"{text} Of {rest} that the gate does not ask about nothing can be said." if rest else text
