"""What README shows of the store: groups by releases, how far the CPU model agrees, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replaydrift import releases
from replaydrift.agreement import CaseAgreement
from replaydrift.report.markdown import counts, groups, header, legend
from replaydrift.report.overview import MachineOverview, Overview

_ON_A_SCREEN = 20


def summary(report: Overview, agreement: Sequence[CaseAgreement] = ()) -> str:
    """The part of README that is generated.

    Where a GPU has results, the CPU model's are not shown, but how far it agrees with them.
    """
    shown = [machine for machine in report.machines if machine.engine != "model"] or list(report.machines)
    parts = [summary_matrix(Overview(report.catalogue, tuple(shown)))]
    parts += [_agreement(agreement)] if agreement else []
    parts += [text for machine in shown if (text := _open(machine))]
    return "\n\n".join(parts)


def summary_matrix(report: Overview) -> str:
    """Groups by releases for each machine, one glyph a kind of verdict with its count.

    Where there are more groups than a screen has lines, those whose verdicts are the same on every release share the last row.
    """
    parts = []
    for machine in report.machines:
        lines = [
            f"**{machine.machine}** ({machine.gpu}, engine `{machine.engine}`)",
            "",
            header("group", machine.releases),
        ]
        there = groups(report, machine)
        alike = [names for _, names in there if not any(_moves(machine, name) for name in names)] if len(there) > _ON_A_SCREEN else []
        lines += [_row(machine, group, names) for group, names in there if names not in alike]
        if alike:
            lines.append(_row(machine, f"{len(alike)} groups, the same on every release", [name for names in alike for name in names]))
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, legend()])


def _moves(machine: MachineOverview, name: str) -> bool:
    """True for a case whose verdict is not the same on every release."""
    return len({summary.verdict for summary in machine.matrix[name].values()}) > 1


def _row(machine: MachineOverview, first: str, names: Iterable[str]) -> str:
    there = list(names)
    return f"| {first} | " + " | ".join(counts(machine.matrix[name][release] for name in there) for release in machine.releases) + " |"


def _agreement(rows: Sequence[CaseAgreement]) -> str:
    """A sentence for each GPU: in how many cases the model comes to the same outcome, by release."""
    sentences = []
    for machine in sorted({row.machine for row in rows}):
        own = [row for row in rows if row.machine == machine]
        names = sorted({row.release for row in own}, key=releases.order)
        listed = ", ".join(
            f"{sum(row.aspects['outcome'] is True for row in own if row.release == name)} of {sum(row.release == name for row in own)} on {name}"
            for name in names
        )
        sentences.append(f"The CPU model comes to the outcome that {machine} had in {listed}.")
    return " ".join(sentences)


def _open(machine: MachineOverview) -> str:
    """A list of the changes that nobody has explained and the cases whose attempts disagree; empty where there are none."""
    lines = [
        f"- `{finding.change.case}`, {check.old} → {check.new}: {finding.change.why[:160]}"
        for check in machine.arrivals
        for finding in check.unexplained
    ]
    lines += [
        f"- `{name}` on {release}: {summary.rates}"
        for name, row in machine.matrix.items()
        for release, summary in row.items()
        if summary.verdict == "flaky"
    ]
    return "\n".join([f"Open on {machine.machine}, since nobody has found the cause:", "", *lines]) if lines else ""
