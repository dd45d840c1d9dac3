"""Facts of the front page: for each machine its matrix as compact cells, and how many cases each release changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from replaydrift.changes import NEWS
from replaydrift.check import Check
from replaydrift.report.html.eras import marks
from replaydrift.report.overview import MachineOverview, Overview
from replaydrift.verdicts import VERDICTS, Summary, summarise

__all__ = ["NEWS", "WORDS", "code_of", "machines", "newest"]

_LETTERS: Final = dict(zip(VERDICTS, "abcdefghijkl", strict=True))
WORDS: Final = {letter: word for word, letter in _LETTERS.items()}


def code_of(verdict: str) -> str:
    """The letter that stands for a verdict in class names: 300 cases on 20 releases must stay well under a megabyte."""
    return _LETTERS[verdict]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the matrix: a verdict, and class names for it and for what a reader must know of it."""

    verdict: str
    classes: str


@dataclass(frozen=True, slots=True)
class Row:
    """One case's line of the matrix; `codes` has a letter a release, for the filters."""

    name: str
    short: str
    kind: str
    mechanism: str
    meaning: str
    cells: tuple[Cell, ...]
    codes: str
    news: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A group's rows under its title."""

    group: str
    title: str
    mechanism: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Front:
    """What the front page shows of one machine."""

    facts: MachineOverview
    sections: tuple[Section, ...]
    counts: tuple[tuple[str, int], ...]  # verdicts on the newest release, dangerous first
    arrivals: tuple[Check, ...]  # newest first

    @property
    def told(self) -> Check | None:
        """The arrival that is unfolded: the newest that changed anything, else the newest."""
        return next((check for check in self.arrivals if check.findings), self.arrivals[0] if self.arrivals else None)

    @property
    def modelled(self) -> bool:
        """True where no GPU executed anything of this."""
        return self.facts.engine == "model"


def machines(report: Overview) -> list[Front]:
    """The front page's facts, machine by machine."""
    return [_front(report, machine) for machine in report.machines]


def newest(report: Overview) -> list[tuple[MachineOverview, dict[str, Summary]]]:
    """Each machine with the summary of every case on its newest release."""
    return [(machine, {name: cells[machine.releases[-1]] for name, cells in machine.matrix.items()}) for machine in report.machines]


def _front(report: Overview, machine: MachineOverview) -> Front:
    changed = {finding.change.case for check in machine.arrivals for finding in check.findings if finding.change.change in NEWS}
    rows: dict[str, list[Row]] = {}
    for name in report.cases(machine):
        rows.setdefault(name.split("/")[0], []).append(_row(report, machine, name, changed))
    sections = [
        Section(group, notes.title if notes else group, notes.mechanism if notes else "", tuple(rows[group]))
        for group in rows
        for notes in [report.catalogue.groups.get(group)]
    ]
    counts = Counter(cells[machine.releases[-1]].verdict for cells in machine.matrix.values())
    return Front(
        machine, tuple(sections), tuple((word, counts[word]) for word in VERDICTS if counts[word]), tuple(reversed(machine.arrivals))
    )


def _row(report: Overview, machine: MachineOverview, name: str, changed: set[str]) -> Row:
    notes = report.catalogue.notes.get(name)
    records = {release: sweep.cases.get(name) for release, sweep in machine.sweeps.items()}
    cells = []
    for release in machine.releases:
        word = summarise(records[release]).verdict
        cells.append(Cell(word, " ".join([code_of(word), *(f"m{mark[0]}" for mark in marks(records[release]))])))
    kind = next((record.kind for record in records.values() if record is not None), "behaviour")
    return Row(
        name, name.partition("/")[2], kind, notes.mechanism if notes else "", notes.meaning if notes else "", tuple(cells),
        "".join(code_of(cell.verdict) for cell in cells), name in changed,
    )  # fmt: skip
