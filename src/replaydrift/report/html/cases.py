"""Facts of a case's page: its chapter and code, what each machine and release did, what sources claim, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from replaydrift import stored_releases
from replaydrift.catalogue import CaseNotes, Catalogue, Claim, GroupNotes
from replaydrift.claims import contradicted, speaks_of
from replaydrift.floor import works
from replaydrift.library import Case
from replaydrift.report.html import code
from replaydrift.report.html import costs as cost_facts
from replaydrift.report.html.drawings import drawings, leftover
from replaydrift.report.html.eras import STEP_NAMES, Era, Variant, eras_of, marks
from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.lanes import lanes
from replaydrift.report.html.svg import Drawing
from replaydrift.report.html.text import chapter
from replaydrift.report.overview import MachineOverview, Overview
from replaydrift.script import script_of
from replaydrift.verdicts import Summary, summarise

__all__ = ["STEP_NAMES", "CasePage", "pages"]


@dataclass(frozen=True)
class Here:
    """What one machine knows of a case."""

    machine: MachineOverview
    verdicts: tuple[tuple[str, Summary], ...]  # release and summary, oldest first
    eras: tuple[Era, ...]

    def marks(self, release: str) -> tuple[str, ...]:
        """What a reader must know of the verdict on this release: any of `rule`, `timing`."""
        return marks(self.machine.sweeps[release].cases.get(self.eras[0].record.case))

    @property
    def floor(self) -> str | None:
        """The release from which every later one of the default line is right; None where the newest is not."""
        right = None
        for release in reversed(stored_releases.lines(self.machine.releases)[0]):
            if not works(self.machine.sweeps[release].cases.get(self.eras[0].record.case)):
                break
            right = release
        return right

    @property
    def modelled(self) -> bool:
        """True where the CPU model executed it."""
        return self.machine.engine == "model"


@dataclass(frozen=True)
class Held:
    """A claim and, for each machine, on which releases it fitted and on which it did not."""

    claim: Claim
    against: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]], ...]  # machine, fits on, (release, seen instead)


@dataclass(frozen=True)
class CasePage:
    """All that a case's page shows."""

    name: str
    kind: str
    case: Case | None
    notes: CaseNotes | None
    group: GroupNotes | None
    text: Markup
    siblings: tuple[tuple[str, Summary | None], ...]
    here: tuple[Here, ...]
    claims: tuple[Held, ...]
    excerpt: Markup
    script: str
    costs: tuple[cost_facts.Series, ...]

    @property
    def newest(self) -> str | None:
        """The newest release of the first machine that ran it."""
        return self.here[0].verdicts[-1][0] if self.here else None

    def drawings(self, variant: Variant) -> list[Drawing]:
        """Its evidence, drawn; for what ran behind the CPU's back, which value was seen when."""
        late = lanes(self.group.mechanism if self.group else "", variant.attempt.strip, self.notes.tolerance if self.notes else 0.0)
        return [*([late] if late else []), *drawings(variant.evidence)]

    def leftover(self, variant: Variant) -> list[tuple[str, str]]:
        """Its evidence that is not drawn."""
        return leftover(variant.evidence)


def pages(report: Overview, costs: Sequence[Cost]) -> Iterator[CasePage]:
    """A page for every case of the library, then for those that only the store knows."""
    known = {case.name: case for case in report.catalogue.cases}
    stored = sorted({name for machine in report.machines for name in machine.matrix} - known.keys())
    measured: dict[str, list[Cost]] = {}
    for cost in costs:
        measured.setdefault(cost.subject, []).append(cost)
    for name in [*known, *stored]:
        yield _page(report, name, known.get(name), measured.get(name, ()))


def _page(report: Overview, name: str, case: Case | None, costs: Sequence[Cost]) -> CasePage:
    catalogue = report.catalogue
    group_name = name.partition("/")[0]
    group = catalogue.library.group(group_name) if case else None
    here = tuple(found for machine in report.machines for found in _here(machine, name))
    kinds = [case.kind] if case else [era.record.kind for found in here for era in found.eras]
    return CasePage(
        name=name,
        kind=kinds[0] if kinds else "behaviour",
        case=case,
        notes=catalogue.notes.get(name),
        group=catalogue.groups.get(group_name),
        text=chapter(group.docstring) if group else Markup(""),
        siblings=tuple((other, _now(report, other)) for other in _siblings(report, group_name)),
        here=here,
        claims=tuple(_held(catalogue, report.machines, name)),
        excerpt=code.highlighted(code.excerpt(case, group)) if case and group else Markup(""),
        script=script_of(case) if case else "",
        costs=tuple(cost_facts.series(costs)),
    )


def _here(machine: MachineOverview, name: str) -> Iterable[Here]:
    records = {release: sweep.cases[name] for release, sweep in machine.sweeps.items() if name in sweep.cases}
    if records:
        verdicts = tuple((release, machine.matrix[name][release]) for release in machine.releases)
        yield Here(machine, verdicts, tuple(eras_of(records)))


def _siblings(report: Overview, group: str) -> list[str]:
    named = [case.name for case in report.catalogue.cases if case.group == group]
    stored = {name for machine in report.machines for name in machine.matrix if name.startswith(f"{group}/")}
    return [*named, *sorted(stored - set(named))]


def _now(report: Overview, name: str) -> Summary | None:
    """The newest verdict on the first machine that knows the case."""
    for machine in report.machines:
        if name in machine.matrix:
            return machine.matrix[name][machine.releases[-1]]
    return None


def _held(catalogue: Catalogue, machines: Iterable[MachineOverview], name: str) -> Iterator[Held]:
    notes = catalogue.notes.get(name)
    machines = tuple(machines)
    for claim in notes.claims if notes else ():
        against = []
        for machine in machines:
            fits, differs = [], []
            for release, sweep in machine.sweeps.items():
                record = sweep.cases.get(name)
                if not speaks_of(claim, release) or summarise(record).verdict in ("missing", "skipped", "broken"):
                    continue
                found = (
                    [difference for difference in contradicted(name, notes, record, release) if difference.claim is claim] if notes else []
                )
                differs += [(release, difference.seen) for difference in found]
                fits += [] if found else [release]
            if fits or differs:
                against.append((machine.machine, tuple(fits), tuple(differs)))
        yield Held(claim, tuple(against))
