"""Which costs changed from release to release within a block, as the tests of the gate say and not the eye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from replaydrift import releases
from replaydrift.check import within
from replaydrift.costs.explained import explaining
from replaydrift.costs.findings import CostFinding
from replaydrift.costs.gate import compare_costs
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import Costs
from replaydrift.explanations import Explanation
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
    causes: tuple[tuple[str, str, int], ...] = ()  # What people wrote, a link, and how many changes it explains; the widest first.
    unexplained: int = 0  # Changes that a person must explain and nobody has.


def steps(block: Sequence[Costs], entries: Sequence[Explanation] = ()) -> Iterator[Step]:
    """Each release of a block against the one before it, the newest first, with what `entries` say of the changes."""
    ordered = sorted(block, key=lambda one: releases.order(one.environment.release))
    for old, new in reversed(list(pairwise(ordered))):
        check = compare_costs(old, new)
        changed = [finding for finding in check.findings if finding.answer == "changed"]
        answers = [finding.answer for finding in check.findings]
        causes = [_cause(finding, old.environment.machine, entries, (check.old, check.new)) for finding in check.news]
        yield Step(
            old=check.old,
            new=check.new,
            changed=tuple((finding.subject, finding.metric, _how(finding)) for finding in changed[:LISTED]),
            more=max(len(changed) - LISTED, 0),
            same=answers.count("same"),
            cannot_tell=answers.count("cannot-tell"),
            others=answers.count("missing") + answers.count("not-comparable"),
            problem=check.problem,
            causes=tuple((*cause, count) for cause, count in Counter(cause for cause in causes if cause is not None).most_common()),
            unexplained=causes.count(None),
        )


def _cause(finding: CostFinding, machine: str, entries: Sequence[Explanation], step: tuple[str, str]) -> tuple[str, str] | None:
    """Why it changed and a link, as people wrote it; None where nobody did."""
    found = explaining(finding, machine, entries, lambda start, end: within(start, end, *step))
    return (" ".join(entry.why for entry in found), next((entry.link for entry in found if entry.link), "")) if found else None


def _how(finding: CostFinding) -> str:
    """The ratio with its interval as percent more or less; a count as what it was and is."""
    seen = finding.comparison
    if seen is not None:
        low, high = (f"{100 * (end - 1):+.1f} %" for end in (seen.low, seen.high))
        return f"{100 * (seen.ratio - 1):+.1f} % ({low} to {high})"
    assert METRICS[finding.metric].exact
    return f"{with_unit(finding.before or 0, finding.metric)} → {with_unit(finding.after or 0, finding.metric)}"
