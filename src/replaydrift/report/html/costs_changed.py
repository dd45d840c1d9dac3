"""Which costs changed from release to release within a block, as the tests of the gate say and not the eye."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from replaydrift import releases
from replaydrift.costs.findings import CostFinding
from replaydrift.costs.gate import compare_costs
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import Costs
from replaydrift.report.html.numbers import with_unit

LISTED = 40


@dataclass(frozen=True)
class Step:
    """From one release to the next: what changed, the gate first, and how much of the rest is the same or cannot be told."""

    old: str
    new: str
    changed: tuple[tuple[str, str, str], ...]  # Subject, metric, and how: `+5.1 % (+4.2 % to +6.0 %)`, or two counts.
    more: int  # Changes beyond those listed.
    same: int
    cannot_tell: int
    others: int  # Missing on a side, or of another version.
    problem: str


def steps(block: Sequence[Costs]) -> Iterator[Step]:
    """Each release of a block against the one before it, the newest first."""
    ordered = sorted(block, key=lambda one: releases.order(one.environment.release))
    for old, new in reversed(list(pairwise(ordered))):
        check = compare_costs(old, new)
        changed = [finding for finding in check.findings if finding.answer == "changed"]
        answers = [finding.answer for finding in check.findings]
        yield Step(
            old=check.old,
            new=check.new,
            changed=tuple((finding.subject, finding.metric, _how(finding)) for finding in changed[:LISTED]),
            more=max(len(changed) - LISTED, 0),
            same=answers.count("same"),
            cannot_tell=answers.count("cannot-tell"),
            others=answers.count("missing") + answers.count("not-comparable"),
            problem=check.problem,
        )


def _how(finding: CostFinding) -> str:
    """The ratio with its interval as percent more or less; a count as what it was and is."""
    seen = finding.comparison
    if seen is not None:
        low, high = (f"{100 * (end - 1):+.1f} %" for end in (seen.low, seen.high))
        return f"{100 * (seen.ratio - 1):+.1f} % ({low} to {high})"
    assert METRICS[finding.metric].exact
    return f"{with_unit(finding.before or 0, finding.metric)} → {with_unit(finding.after or 0, finding.metric)}"
