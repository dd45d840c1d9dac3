"""A check for a person: wrapped and coloured at a terminal, one plain line a fact when piped into a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from replaydrift.catalogue import Catalogue
from replaydrift.changes import NEWS, UNDECIDED
from replaydrift.check import Check, Finding
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.explanations import Explanation
from replaydrift.records import CaseRecord
from replaydrift.report.checks import HEADINGS, alike, answer, reproduction, sections
from replaydrift.report.cost_words import COST_HEADINGS, LISTED, by_cause, circumstances, listed, remainder, said
from replaydrift.verdicts import settled

_STYLES = {0: "bold green", 1: "bold red", 2: "bold yellow"}
_STEP = 2

# How far a line is indented, in steps, and the line.
Line = tuple[int, Text]


def print_check(check: Check, catalogue: Catalogue, console: Console) -> None:
    """Print the answer, what else changed beside torch, then every finding, the most dangerous first."""
    for indent, line in lines(check, catalogue):
        if console.is_terminal:
            console.print(Padding(line, (0, 0, 0, _STEP * indent)))
        else:
            # A log wraps or scrolls as its reader likes; lines broken here could not be searched.
            console.print(Text(" " * _STEP * indent) + line, soft_wrap=True)


def lines(check: Check, catalogue: Catalogue) -> Iterator[Line]:
    """The whole check, line by line."""
    yield 0, Text(f"torch {check.old} → {check.new} on {check.machine} (engine {check.engine}, {check.gpu})", style="bold")
    yield 0, Text(answer(check), style=_STYLES[check.exit_code])
    if check.engine == "model":
        yield 0, Text("These are verdicts of the CPU model of CUDA graphs, not of a GPU.", style="yellow")
    for name, (old, new) in check.environment.items():
        yield 0, Text(f"{name}: {old} → {new}", style="dim")
    for change, causes in sections(check):
        yield 0, Text()
        yield 0, Text(f"{HEADINGS[change]} ({sum(len(findings) for findings in causes)})", style="bold underline")
        for findings in causes:
            yield from _cause(findings, check, catalogue)
    if check.stale:
        yield 0, Text()
        yield 0, Text("Explanations that match nothing any more", style="bold underline")
        for entry in check.stale:
            yield 1, Text(f"{entry.case} {entry.start} → {entry.end}: {entry.change}; correct or delete the entry")
    if check.costs is not None:
        yield from _costs(check, check.costs)
    yield 0, Text()
    yield 0, Text(alike(check), style="dim")
    if check.costs is not None:
        yield 0, Text(remainder(check.costs), style="dim")


def _costs(check: Check, costs: CostCheck) -> Iterator[Line]:
    """The costs that changed or that the gate asks about in vain, below where they come from."""
    yield 0, Text()
    yield 0, Text("Costs", style="bold underline")
    yield 0, Text(circumstances(costs), style="yellow" if costs.problem else "dim")
    for became, findings in listed(costs):
        yield 1, Text(f"{COST_HEADINGS[became]} ({len(findings)})", style="bold")
        for entries, those in by_cause(findings, check.costs_explained):
            shown = those[:LISTED] if entries else those
            for finding in shown:
                yield from _cost(finding, costs)
            if len(those) > len(shown):
                yield 2, Text(f"and {len(those) - len(shown)} more, which --json lists", style="dim")
            for entry in entries:
                yield 2, Text(f"Why: {entry.why} {entry.link}".rstrip(), style="green")
            yield from ((2, line) for line in _advice(entries))
    subjects = " ".join(dict.fromkeys(f"--case {finding.subject}" for finding in check.unexplained_costs))
    if subjects:
        yield 1, Text(
            f"Unexplained. Draft its entry: replaydrift accept {check.old} {check.new} --machine {check.machine} {subjects}", style="red"
        )


def _cost(finding: CostFinding, costs: CostCheck) -> Iterator[Line]:
    """A cost and its numbers; a change that gates nothing says so."""
    aside = "" if finding.gates or finding.answer != "changed" else "  (listed, gates nothing)"
    yield 2, Text(finding.name, style="bold cyan") + Text(aside, style="dim")
    yield 3, Text(said(finding, costs))


def _cause(findings: list[Finding], check: Check, catalogue: Catalogue) -> Iterator[Line]:
    """All findings of one cause, then the cause once."""
    change = findings[0].change.change
    for finding in findings:
        notes = catalogue.notes.get(finding.change.case)
        yield 1, Text(finding.change.case, style="bold cyan")
        if notes and notes.meaning:
            yield 2, Text(notes.meaning)
        yield from _sides(finding, check)
        if change in NEWS:
            yield 2, Text(reproduction(check, finding.change.case), style="dim")
    for entry in findings[0].explained_by:
        yield 1, Text(f"Why: {entry.why} {entry.link}".rstrip(), style="green")
    yield from ((1, line) for line in _advice(findings[0].explained_by))
    if change in NEWS and not findings[0].explained_by:
        cases = " ".join(f"--case {finding.change.case}" for finding in findings)
        yield (
            1,
            Text(
                f"Unexplained. Draft its entry: replaydrift accept {check.old} {check.new} --machine {check.machine} {cases}", style="red"
            ),
        )


def _advice(entries: Iterable[Explanation]) -> Iterator[Text]:
    """What people advise, each text once."""
    for text in dict.fromkeys(entry.advice for entry in entries if entry.advice):
        yield Text(f"What to do: {text}")


def _sides(finding: Finding, check: Check) -> Iterator[Line]:
    """Old and new under each other where both were run; else the sentence that says why not."""
    change = finding.change
    if change.old is None or change.new is None or change.change in UNDECIDED or change.change == "flaky":
        yield 2, Text(change.why)
        return
    width = max(len(check.old), len(check.new))
    for release, record in ((check.old, change.old), (check.new, change.new)):
        first, *rest = _side(record)
        yield 2, Text(f"{release:{width}}  ", style="dim") + Text(first, style="default")
        yield from ((3, Text(text)) for text in rest)


def _side(record: CaseRecord) -> list[str]:
    """What one side did: outcome, values where wrong; then the causes of an error, and warnings with how often."""
    attempts = settled(record.attempts)
    attempt = attempts[0]
    agreed = f"({len(attempts)} of {len(attempts)})"
    said = [f"wrong: {attempt.observed} {agreed}" if attempt.outcome.kind == "wrong" else f"{attempt.outcome.text} {agreed}"]
    said += [f"caused by {name}: {text}" for name, text in attempt.errors[1:]]
    said += [f"warns {w.count}×, {w.category}: {w.text.strip().splitlines()[0]}" for w in attempt.warnings if w.text.strip()]
    return said
