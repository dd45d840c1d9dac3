"""Entries of explanations.toml that speak of a cost: its subject as `case`, `cost-changed`, then the metric and where it went.

Of a time an entry keeps the direction (`replay_gpu_us` → `replay_gpu_us more`), since its numbers are never the same twice; of a count
it keeps the numbers (`nodes 1000` → `nodes 1001`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """The entries that explain a changed cost: of a time all that lead the same way, of a count those that lead from number to number."""
    before, after = sides(finding)
    own = [
        entry
        for entry in sorted(entries, key=lambda entry: releases.order(entry.start))
        if (entry.case, entry.change) == (finding.subject, CHANGE) and entry.speaks_of(machine) and within(entry.start, entry.end)
    ]
    if not finding.exact:
        return tuple(entry for entry in own if (entry.before, entry.after) == (before, after))
    at, path = before, []
    for entry in own:
        if entry.before == at:
            path.append(entry)
            at = entry.after
    return tuple(path) if path and at == after else ()


def is_stale(entry: Explanation, check: CostCheck) -> bool:
    """True where the costs of an entry's own two releases show that the change it explains is not there (any more).

    What nobody can tell, or nobody measured, says nothing about its explanation.
    """
    metric = entry.before.split(" ")[0]
    found = next((one for one in check.findings if (one.subject, one.metric) == (entry.case, metric)), None)
    if found is None or found.answer not in ("changed", "same"):
        return False
    return found.answer == "same" or sides(found) != (entry.before, entry.after)
