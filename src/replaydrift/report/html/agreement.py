"""How the CPU model agreed with a GPU: counts a version, and every case on which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replaydrift import releases
from replaydrift.report.html.inputs import Agreed


@dataclass(frozen=True)
class Tally:
    """One version of torch held against one GPU machine."""

    version: str
    machine: str
    rows: tuple[Agreed, ...]

    @property
    def agree(self) -> int:
        """Cases that agree."""
        return sum(row.agrees for row in self.rows)

    @property
    def by_rule(self) -> int:
        """Cases that agree because a rule of the model says so: no evidence."""
        return sum(row.agrees and bool(row.rules) for row in self.rows)

    @property
    def differing(self) -> list[Agreed]:
        """Cases that do not agree."""
        return [row for row in self.rows if not row.agrees]


def summarise_agreement(rows: Sequence[Agreed]) -> list[Tally]:
    """A tally for each version and machine, newest version first."""
    groups: dict[tuple[str, str], list[Agreed]] = {}
    for row in sorted(rows, key=lambda row: row.case):
        groups.setdefault((row.version, row.machine), []).append(row)
    ordered = sorted(groups, key=lambda key: (releases.order(key[0]), key[1]), reverse=True)
    return [Tally(version, machine, tuple(groups[version, machine])) for version, machine in ordered]
