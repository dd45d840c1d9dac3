"""The facts of a report, once: the matrix, what each release changed on arriving, where torch differs from the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from replaydrift import releases, stored_releases
from replaydrift.catalogue import Catalogue
from replaydrift.check import Check, check
from replaydrift.claims import Difference, contradicted
from replaydrift.costs.cost_store import CostStore
from replaydrift.explanations import Explanation, Reason
from replaydrift.store import Store, Sweep
from replaydrift.verdicts import Summary, summarise


@dataclass(frozen=True)
class MachineOverview:
    """All that the store holds of one machine, releases oldest first."""

    machine: str
    engine: str
    gpu: str
    sweeps: Mapping[str, Sweep]
    arrivals: tuple[Check, ...]  # one a neighbouring pair of releases of one line, oldest first
    differences: Mapping[str, tuple[Difference, ...]]  # by release
    reasons: tuple[Reason, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases, oldest first."""
        return tuple(self.sweeps)

    def reasons_for(self, case: str, source: str, release: str) -> tuple[Reason, ...]:
        """What people wrote about why this release contradicts this source on this case."""
        return tuple(reason for reason in self.reasons if reason.speaks_of(case, source, release))

    @cached_property
    def matrix(self) -> dict[str, dict[str, Summary]]:
        """The summary of every case on every release; `missing` where a release has no record of a case."""
        names = sorted({name for sweep in self.sweeps.values() for name in sweep.cases})
        return {name: {release: summarise(sweep.cases.get(name)) for release, sweep in self.sweeps.items()} for name in names}


@dataclass(frozen=True)
class Overview:
    """A report's facts for all machines of a store, those with a GPU first."""

    catalogue: Catalogue
    machines: tuple[MachineOverview, ...]

    def cases(self, machine: MachineOverview) -> list[str]:
        """The machine's cases in the order of the library, those the library no longer has at the end."""
        order = {case.name: position for position, case in enumerate(self.catalogue.cases)}
        return sorted(machine.matrix, key=lambda name: (order.get(name, len(order)), name))


def overview(store: Store, catalogue: Catalogue, entries: Sequence[Explanation] = (), reasons: Sequence[Reason] = ()) -> Overview:
    """The facts of the whole store; StoreError where a file of it cannot be read."""
    machines = [_of_machine(store, machine, catalogue, entries, tuple(reasons)) for machine in store.machines()]
    return Overview(catalogue, tuple(sorted(machines, key=lambda machine: (machine.engine == "model", machine.machine))))


def _of_machine(store: Store, machine: str, catalogue: Catalogue, entries: Sequence[Explanation], reasons: tuple[Reason, ...]) -> MachineOverview:
    names = sorted(store.releases(machine), key=releases.order)
    sweeps = {release: store.read(machine, release) for release in names}
    pairs = [(old, new) for line in stored_releases.lines(names) for old, new in pairwise(line)]
    read = sweeps.__getitem__
    costs = CostStore(store.root)
    pairs.sort(key=lambda pair: releases.order(pair[1]))
    arrivals = [check(store, machine, old, new, (), entries, read=read, costs=costs) for old, new in pairs]
    differences = {
        release: tuple(
            difference
            for name in sweep.cases
            if name in catalogue.notes
            for difference in contradicted(name, catalogue.notes[name], sweep.cases[name], release)
        )
        for release, sweep in sweeps.items()
    }
    last = sweeps[names[-1]].environment
    return MachineOverview(machine, last.engine, last.gpu, sweeps, tuple(arrivals), differences, reasons, tuple(entries))
