"""Facts of a release's page: where it ran, what it changed, where it differs from what sources say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replaydrift import releases
from replaydrift.check import Check
from replaydrift.claims import Difference
from replaydrift.explanations import Explanation, Reason
from replaydrift.records import CaseRecord, Environment, Raised, Warned
from replaydrift.report.html.differs import causes
from replaydrift.report.html.eras import marks
from replaydrift.report.overview import MachineOverview, Overview
from replaydrift.verdicts import VERDICTS, settled, verdict


@dataclass(frozen=True)
class There:
    """What one machine says of a release."""

    machine: MachineOverview
    environment: Environment
    facts: tuple[tuple[str, str], ...]  # every stored fact, flattened
    verdicts: tuple[tuple[str, tuple[str, ...]], ...]  # verdict and its cases, the dangerous first
    arrival: Check | None
    differences: tuple[tuple[Difference, tuple[Explanation | Reason, ...]], ...]

    @property
    def modelled(self) -> bool:
        """True where the CPU model executed it."""
        return self.machine.engine == "model"


@dataclass(frozen=True)
class Side:
    """What one side of a change did: outcome and how often, values, the chain of errors, warnings."""

    outcome: str
    verdict: str
    attempts: int
    observed: str
    chain: tuple[Raised, ...]
    warnings: tuple[Warned, ...]
    marks: tuple[str, ...] = ()


def release_facts(report: Overview) -> dict[str, list[There]]:
    """For each release, oldest first, what every machine that ran it says."""
    names = sorted({release for machine in report.machines for release in machine.releases}, key=releases.order)
    return {name: [_there(report, machine, name) for machine in report.machines if name in machine.sweeps] for name in names}


def side(record: CaseRecord) -> Side:
    """What the record's attempts did, told by the first of them; a change needs them to agree."""
    attempts = settled(record.attempts)
    first = attempts[0]
    observed = first.observed if first.outcome.kind == "wrong" else ""
    return Side(first.outcome.text, verdict(record.kind, first.outcome), len(attempts), observed, first.chain, first.warnings, marks(record))


def _there(report: Overview, machine: MachineOverview, release: str) -> There:
    sweep = machine.sweeps[release]
    by_verdict: dict[str, list[str]] = {}
    for name in report.cases(machine):
        by_verdict.setdefault(machine.matrix[name][release].verdict, []).append(name)
    return There(
        machine=machine,
        environment=sweep.environment,
        facts=tuple(_flat(sweep.environment.facts)),
        verdicts=tuple((word, tuple(by_verdict[word])) for word in VERDICTS if word in by_verdict),
        arrival=next((check for check in machine.arrivals if check.new == release), None),
        differences=tuple(
            (difference, causes(machine, difference.case, release, difference.claim.source)) for difference in machine.differences[release]
        ),
    )


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key in sorted(tree):
        name = f"{prefix}{key}"
        if isinstance(tree[key], Mapping):
            yield from _flat(tree[key], f"{name} ")
        elif tree[key] not in (None, "", []):
            value = tree[key]
            yield name, ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
