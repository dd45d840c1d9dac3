"""Entries of explanations.toml that speak of a cost: its subject as `case`, `cost-changed`, then the metric and where it went.

Of a time an entry keeps the direction (`replay_gpu_us` → `replay_gpu_us more`), since its numbers are never the same twice; of a count
it keeps the numbers (`nodes 1000` → `nodes 1001`). Where one cause moved a metric of many subjects, one entry may speak of them all: its
`case` is a shell pattern (`bucketing/*`), and a count keeps its direction too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Final

from replaydrift import releases
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.explanations import Explanation

CHANGE: Final = "cost-changed"


def sides(finding: CostFinding) -> tuple[str, str]:
    """What an entry keeps as `before` and `after` of a changed cost."""
    if finding.exact and finding.before is not None and finding.after is not None:
        return f"{finding.metric} {finding.before:.0f}", f"{finding.metric} {finding.after:.0f}"
    return finding.metric, f"{finding.metric} {finding.direction}"


def explaining(
    finding: CostFinding, machine: str, entries: Iterable[Explanation], within: Callable[[str, str], bool],
) -> tuple[Explanation, ...]:  # fmt: skip
    """The entries that explain a changed cost: all that lead the same way, or of a count those that lead from number to number."""
    before, after = sides(finding)
    own = [
        entry
        for entry in sorted(entries, key=lambda entry: releases.order(entry.start))
        if entry.change == CHANGE
        and fnmatchcase(finding.subject, entry.case)
        and entry.speaks_of(machine)
        and within(entry.start, entry.end)
    ]
    alike = tuple(entry for entry in own if (entry.before, entry.after) == (finding.metric, f"{finding.metric} {finding.direction}"))
    if alike or not finding.exact:
        return alike
    at, path = before, []
    for entry in own:
        if entry.before == at:
            path.append(entry)
            at = entry.after
    return tuple(path) if path and at == after else ()


def is_stale(entry: Explanation, check: CostCheck) -> bool:
    """True where the costs of an entry's own two releases show that the change it explains is not there (any more).

    What nobody can tell, or nobody measured, says nothing about its explanation; one of many subjects is true while any of them changed so.
    """
    metric = entry.before.split(" ")[0]
    told = [
        one
        for one in check.findings
        if one.metric == metric and fnmatchcase(one.subject, entry.case) and one.answer in ("changed", "same")
    ]
    return bool(told) and not any(one.answer == "changed" and _leads(one, entry) for one in told)


def _leads(finding: CostFinding, entry: Explanation) -> bool:
    """True where the change went where the entry says, by its numbers or by its direction."""
    return (entry.before, entry.after) in (sides(finding), (finding.metric, f"{finding.metric} {finding.direction}"))
