"""A check as Markdown, JSON and JUnit: a pull-request comment, a program's input, a test report. Text is `check_text`'s."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from replaydrift.catalogue import Catalogue
from replaydrift.changes import CHANGES, NEWS, QUIET
from replaydrift.check import Check, Finding
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.explanations import Explanation
from replaydrift.report.cost_words import COST_HEADINGS, LISTED, by_cause, circumstances, listed, remainder, said
from replaydrift.report.escape import escape

# What each change means for the reader of a list, in the order of danger.
HEADINGS = {
    "now-wrong": "Silently wrong now",
    "now-crashes": "Crashes or hangs now",
    "now-raises": "Raises now",
    "values-changed": "Wrong before and now, with other values",
    "now-loud": "Was silently wrong, raises now",
    "error-changed": "Raises another error",
    "warnings-changed": "Warns otherwise",
    "cost-changed": "Costs more or less",
    "fixed": "Fixed",
    "flaky": "Flaky: attempts disagree",
    "missing": "Not run on both releases",
    "cannot-tell": "Cannot tell",
    "not-comparable": "Not comparable",
}
assert set(HEADINGS) == set(CHANGES) - QUIET

ANSWERS = {
    0: "Nothing unexplained changed.",
    1: "Something changed that nobody has explained.",
    2: "Cannot tell: results are missing, incomplete or not comparable.",
}


def answer(check: Check) -> str:
    """The verdict of the whole check in a sentence or two."""
    text = ANSWERS[check.exit_code]
    if check.exit_code == 2 and not check.undecided:
        text = "Nothing unexplained changed that could be told, but what it costs cannot be told."
    if check.nothing_ran:
        text = "Cannot tell: both releases skip all of these cases."
    if check.stale:
        text += f" {len(check.stale)} explanation(s) match nothing any more."
    if check.exit_code == 1 and check.undecided:
        text += f" About {len(check.undecided)} case(s) nothing can be said."
    if check.costs is not None and check.costs.undecided:
        text += f" About {len(check.costs.undecided)} cost(s) of the gate nothing can be said."
    if check.costs is not None and check.costs.problem:
        text += f" Times were not compared: {check.costs.problem}."
    return text


def alike(check: Check) -> str:
    """How many cases behave the same, and how many neither release ran."""
    skipped = f" {len(check.skipped)} skipped on both: nothing is known of them." if check.skipped else ""
    return f"{check.same} case(s) behave the same.{skipped}"


def sections(check: Check) -> Iterable[tuple[str, list[list[Finding]]]]:
    """The kinds of change that occur, the dangerous first, each with its findings grouped by cause."""
    for change, findings in groupby(check.findings, key=lambda finding: finding.change.change):
        causes: dict[str, list[Finding]] = {}
        for finding in findings:
            causes.setdefault(finding.cause, []).append(finding)
        yield change, list(causes.values())


def reproduction(check: Check, case: str) -> str:
    """The command that shows this case on one interpreter after the other."""
    return f"replaydrift show {case} > case.py   # then run it with the torch of {check.old} and of {check.new}"


def to_markdown(check: Check, catalogue: Catalogue) -> str:
    """A comment for a pull request or a job's summary."""
    lines = [f"## replaydrift: torch {check.old} → {check.new} on `{check.machine}`", "", f"**{answer(check)}**", ""]
    lines += [f"Engine: {check.engine}, {check.gpu}. {alike(check)}"]
    lines += [f"{name}: {old} → {new}." for name, (old, new) in check.environment.items()]
    for change, causes in sections(check):
        lines += ["", f"### {HEADINGS[change]}", "", "| case | before → after | meaning | cause |", "|---|---|---|---|"]
        for findings in causes:
            for finding in findings:
                notes = catalogue.notes.get(finding.change.case)
                cause = "; ".join(_linked(entry.why, entry.link) for entry in finding.explained_by)
                cells = (
                    f"`{finding.change.case}`",
                    escape(finding.change.why),
                    escape(notes.meaning) if notes else "",
                    cause or ("**unexplained**" if change in NEWS else ""),
                )
                lines.append("| " + " | ".join(cells) + " |")
    if check.stale:
        lines += ["", "### Explanations that match nothing any more", ""]
        lines += [f"- `{entry.case}` {entry.start} → {entry.end}: {entry.change}" for entry in check.stale]
    if check.costs is not None:
        lines += _costs_as_markdown(check, check.costs)
    return "\n".join(lines) + "\n"


def _costs_as_markdown(check: Check, costs: CostCheck) -> list[str]:
    lines = ["", "### Costs", "", escape(circumstances(costs)), escape(remainder(costs))]
    for became, findings in listed(costs):
        lines += ["", f"**{COST_HEADINGS[became]}**", "", "| cost | before → after | cause |", "|---|---|---|"]
        for entries, alike in by_cause(findings, check.costs_explained):
            shown = alike[:LISTED] if entries else alike
            lines += [f"| `{finding.name}` | {escape(said(finding, costs))} | {_cause_of_cost(finding, check)} |" for finding in shown]
            if len(alike) > len(shown):
                lines.append(f"| and {len(alike) - len(shown)} more | | {_cause_of_cost(alike[-1], check)} |")
    return lines


def _cause_of_cost(finding: CostFinding, check: Check) -> str:
    """What explains a changed cost, in Markdown; that nothing does; or that nothing has to."""
    if finding.answer != "changed":
        return ""
    if not finding.gates:
        return "listed, gates nothing"
    return "; ".join(_linked(entry.why, entry.link) for entry in check.costs_explained.get(finding.name, ())) or "**unexplained**"


def to_json(check: Check, catalogue: Catalogue) -> str:
    """The whole check for a program; `exit_code` is what the command exits with."""
    tree: dict[str, Any] = {
        "machine": check.machine,
        "engine": check.engine,
        "gpu": check.gpu,
        "old": check.old,
        "new": check.new,
        "exit_code": check.exit_code,
        "answer": answer(check),
        "same": check.same,
        "skipped": [change.case for change in check.skipped],
        "environment": {name: {"old": old, "new": new} for name, (old, new) in check.environment.items()},
        "findings": [_finding(finding, check, catalogue) for finding in check.findings],
        "stale": [{"case": e.case, "from": e.start, "to": e.end, "change": e.change} for e in check.stale],
    }
    if check.costs is not None:
        tree["costs"] = _costs_as_json(check, check.costs)
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def _costs_as_json(check: Check, costs: CostCheck) -> dict[str, Any]:
    return {
        "block": costs.block,
        "problem": costs.problem,
        "processes": {"old": costs.processes[0], "new": costs.processes[1]},
        "toolkits": {"old": costs.toolkits[0], "new": costs.toolkits[1]},
        "gate": costs.family,
        "pending": costs.pending,
        "same": costs.same,
        "cannot_tell": costs.cannot_tell,
        "findings": [_cost_finding(finding, check, costs) for finding in costs.findings if finding.answer != "same"],
    }


def to_junit(check: Check) -> str:
    """JUnit XML: a test a finding; unexplained news fail, what cannot be told is skipped."""
    costs = [finding for _, own in listed(check.costs) for finding in own] if check.costs else []
    failures = len(check.unexplained) + len(check.unexplained_costs) + len(check.stale)
    problem = check.costs.problem if check.costs and check.costs.asked else ""
    skipped = len(check.undecided) + sum(finding.undecided for finding in costs) + bool(problem)
    total = str(len(check.findings) + len(costs) + bool(problem) + len(check.stale) + check.same)
    suite = ET.Element(
        "testsuite",
        name=f"torch {check.old} → {check.new} on {check.machine}",
        tests=total,
        failures=str(failures),
        skipped=str(skipped),
    )
    for finding in check.findings:
        test = ET.SubElement(suite, "testcase", classname=finding.change.case.split("/")[0], name=finding.change.case)
        if finding in check.unexplained:
            ET.SubElement(test, "failure", type=finding.change.change, message=_plain(finding.change.why))
        elif finding in check.undecided:
            ET.SubElement(test, "skipped", message=_plain(finding.change.why))
    if problem:
        test = ET.SubElement(suite, "testcase", classname="costs", name="times compare")
        ET.SubElement(test, "skipped", message=_plain(problem))
    for cost in costs:
        assert check.costs is not None
        test = ET.SubElement(suite, "testcase", classname="costs", name=cost.name)
        if cost in check.unexplained_costs:
            ET.SubElement(test, "failure", type="cost-changed", message=_plain(said(cost, check.costs)))
        elif cost.undecided:
            ET.SubElement(test, "skipped", message=_plain(said(cost, check.costs)))
    for entry in check.stale:
        test = ET.SubElement(suite, "testcase", classname="explanations", name=f"{entry.case} {entry.start} → {entry.end}")
        ET.SubElement(test, "failure", type="stale", message="the explanation matches nothing any more")
    for number in range(check.same):
        ET.SubElement(suite, "testcase", classname="same", name=f"same {number + 1}")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _finding(finding: Finding, check: Check, catalogue: Catalogue) -> dict[str, Any]:
    notes = catalogue.notes.get(finding.change.case)
    return {
        "case": finding.change.case,
        "change": finding.change.change,
        "why": finding.change.why,
        "meaning": notes.meaning if notes else "",
        "news": finding.change.change in NEWS,
        "explained_by": _entries(finding.explained_by),
        "reproduce": reproduction(check, finding.change.case),
    }


def _cost_finding(finding: CostFinding, check: Check, costs: CostCheck) -> dict[str, Any]:
    comparison = finding.comparison
    numbers = {} if comparison is None else {
        "ratio": comparison.ratio,
        "interval": [comparison.low, comparison.high],
        "margin": comparison.margin,
        "test": comparison.test,
        "p": finding.adjusted,
        "smallest_found": finding.smallest,
    }  # fmt: skip
    return {
        "subject": finding.subject,
        "metric": finding.metric,
        "answer": finding.answer,
        "headline": finding.headline,
        "news": finding.gates,
        "why": said(finding, costs),
        "before": finding.before,
        "after": finding.after,
        "explained_by": _entries(check.costs_explained.get(finding.name, ())),
        **numbers,
    }


def _entries(entries: Iterable[Explanation]) -> list[dict[str, str]]:
    return [
        {"from": entry.start, "to": entry.end, "why": entry.why, "link": entry.link, "title": entry.title, "advice": entry.advice}
        for entry in entries
    ]


def _linked(text: str, link: str) -> str:
    return f"[{escape(text)}]({link})" if link else escape(text)


def _plain(text: str) -> str:
    """Text without the control characters that XML does not take."""
    return "".join(character if character.isprintable() else "�" for character in text)
