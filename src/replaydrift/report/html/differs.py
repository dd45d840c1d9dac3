"""Where torch differs from the page: contradicted claims of a machine, with releases and the cause where one is written down."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replaydrift import releases, stored_releases
from replaydrift.catalogue import Claim
from replaydrift.changes import NEWS
from replaydrift.explanations import Explanation, Reason
from replaydrift.report.overview import MachineOverview


@dataclass(frozen=True)
class Contradiction:
    """One claim, what was seen instead on each run of releases, and why the case came to differ."""

    case: str
    claim: Claim
    claimed: str
    seen: tuple[tuple[str, tuple[str, ...]], ...]  # what, and on which releases
    causes: tuple[Explanation | Reason, ...]


def contradictions(machine: MachineOverview, order: Iterable[str]) -> list[Contradiction]:
    """All contradicted claims of a machine, in the order of `order` (case names)."""
    found: dict[tuple[str, int], dict[str, list[str]]] = {}
    claims: dict[tuple[str, int], tuple[Claim, str]] = {}
    for release in machine.releases:
        for difference in machine.differences[release]:
            key = (difference.case, id(difference.claim))
            claims[key] = (difference.claim, difference.claimed)
            found.setdefault(key, {}).setdefault(difference.seen, []).append(release)
    position = {name: number for number, name in enumerate(order)}
    listed = []
    for key in sorted(found, key=lambda key: position.get(key[0], len(position))):
        claim, claimed = claims[key]
        seen = tuple((text, tuple(names)) for text, names in found[key].items())
        newest = max((name for _, names in seen for name in names), key=releases.order)
        listed.append(Contradiction(key[0], claim, claimed, seen, causes(machine, key[0], newest, claim.source)))
    return listed


def causes(machine: MachineOverview, case: str, release: str, source: str) -> tuple[Explanation | Reason, ...]:
    """What is written about this very contradiction, else the explanations of the last change of the case at or before `release`."""
    reasons = machine.reasons_for(case, source, release)
    if reasons:
        return reasons
    for check in reversed(machine.arrivals):
        if not stored_releases.same_line(check.new, release) or releases.order(check.new) > releases.order(release):
            continue
        for finding in check.findings:
            if finding.change.case == case and finding.change.change in NEWS:
                return finding.explained_by
    return ()
