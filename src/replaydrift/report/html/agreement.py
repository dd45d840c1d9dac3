"""How far the CPU model agreed with a GPU: counts for each release and machine, and every case on which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydrift import releases
from replaydrift.agreement import CaseAgreement


@dataclass(frozen=True)
class Tally:
    """The model held against one GPU machine on one release."""

    release: str
    machine: str
    rows: tuple[CaseAgreement, ...]

    @property
    def agree(self) -> int:
        """Cases that agree in every aspect that arises."""
        return sum(row.agrees for row in self.rows)

    @property
    def by_rule(self) -> int:
        """Cases that agree and rest on a written rule of the model: no evidence."""
        return sum(row.agrees and bool(row.rules) for row in self.rows)

    @property
    def differing(self) -> list[CaseAgreement]:
        """Cases that do not agree."""
        return [row for row in self.rows if not row.agrees]


def tallies(rows: Sequence[CaseAgreement]) -> list[Tally]:
    """A tally for each release and machine, the newest release first."""
    groups: dict[tuple[str, str], list[CaseAgreement]] = {}
    for row in sorted(rows, key=lambda row: row.case):
        groups.setdefault((row.release, row.machine), []).append(row)
    ordered = sorted(groups, key=lambda key: (releases.order(key[0]), key[1]), reverse=True)
    return [Tally(release, machine, tuple(groups[release, machine])) for release, machine in ordered]
