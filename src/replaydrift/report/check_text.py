"""A check for a person at a terminal, or in a log when piped."""

from __future__ import annotations

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from replaydrift.catalogue import Catalogue
from replaydrift.changes import NEWS
from replaydrift.check import Check, Finding
from replaydrift.records import Attempt, CaseRecord
from replaydrift.report.checks import HEADINGS, answer, reproduction, sections
from replaydrift.verdicts import settled

_STYLES = {0: "bold green", 1: "bold red", 2: "bold yellow"}


def print_check(check: Check, catalogue: Catalogue, console: Console) -> None:
    """Print the answer, what else changed beside torch, then every finding, the most dangerous first."""
    console.print(Text(f"torch {check.old} → {check.new} on {check.machine} (engine {check.engine}, {check.gpu})", style="bold"))
    console.print(Text(answer(check), style=_STYLES[check.exit_code]))
    if check.engine == "model":
        console.print(Text("These are verdicts of the CPU model of CUDA graphs, not of a GPU.", style="yellow"))
    for name, (old, new) in check.environment.items():
        console.print(Text(f"{name}: {old} → {new}", style="dim"))
    for change, causes in sections(check):
        count = sum(len(findings) for findings in causes)
        console.print()
        console.print(Text(f"{HEADINGS[change]} ({count})", style="bold underline"))
        for findings in causes:
            console.print(Padding(_cause(findings, check, catalogue), (0, 0, 0, 2)))
    if check.stale:
        console.print()
        console.print(Text("Explanations that match nothing any more", style="bold underline"))
        for entry in check.stale:
            console.print(Text(f"  {entry.case} {entry.start} → {entry.end}: {entry.change}; correct or delete the entry"))
    console.print()
    console.print(Text(f"{check.same} case(s) behave the same.", style="dim"))


def _cause(findings: list[Finding], check: Check, catalogue: Catalogue) -> Group:
    """All findings of one cause, then the cause once."""
    parts: list[object] = []
    for finding in findings:
        notes = catalogue.notes.get(finding.change.case)
        parts.append(Text(finding.change.case, style="bold cyan"))
        if notes and notes.meaning:
            parts.append(Padding(Text(notes.meaning), (0, 0, 0, 2)))
        parts.append(Padding(_sides(finding, check), (0, 0, 0, 2)))
        if finding.change.change in NEWS:
            parts.append(Padding(Text(reproduction(check, finding.change.case), style="dim"), (0, 0, 0, 2)))
    whys = [Text(f"Why: {entry.why} {entry.link}".rstrip(), style="green") for entry in findings[0].explained_by]
    parts += [Padding(why, (0, 0, 0, 2)) for why in whys]
    if findings[0].change.change in NEWS and not findings[0].explained_by:
        parts.append(
            Padding(
                Text(
                    f"Unexplained. Draft its entry: replaydrift accept {check.old} {check.new} --case {findings[0].change.case}",
                    style="red",
                ),
                (0, 0, 0, 2),
            )
        )
    return Group(*parts)  # type: ignore[arg-type]


def _sides(finding: Finding, check: Check) -> Table | Text:
    """Old and new beside each other where both were run; else the sentence that says why not."""
    change = finding.change
    if change.old is None or change.new is None or change.change in ("not-comparable", "cannot-tell", "flaky", "missing"):
        return Text(change.why)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row(check.old, Text(_side(change.old)))
    table.add_row(check.new, Text(_side(change.new)))
    return table


def _side(record: CaseRecord) -> str:
    """What one side did: outcome, values where wrong, the chain of errors, warnings with how often."""
    attempts = settled(record.attempts)
    attempt: Attempt = attempts[0]
    lines = [f"{attempt.outcome.text}, {len(attempts)} of {len(attempts)}"]
    if attempt.outcome.kind == "wrong":
        lines[0] += f": {attempt.observed}"
    lines += [f"  caused by {name}: {text}" for name, text in attempt.errors[1:]]
    lines += [
        f"  warns {warning.count}×, {warning.category}: {warning.text.strip().splitlines()[0]}"
        for warning in attempt.warnings
        if warning.text.strip()
    ]
    return "\n".join(lines)
