"""A check as Markdown, JSON and JUnit: a pull-request comment, a program's input, a test report. Text is `check_text`'s."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from replaydrift.catalogue import Catalogue
from replaydrift.changes import CHANGES, NEWS
from replaydrift.check import Check, Finding
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
assert set(HEADINGS) == set(CHANGES) - {"same"}

ANSWERS = {
    0: "Nothing unexplained changed.",
    1: "Something changed that nobody has explained.",
    2: "Cannot tell: results are missing, incomplete or not comparable.",
}


def answer(check: Check) -> str:
    """The verdict of the whole check in a sentence or two."""
    text = ANSWERS[check.exit_code]
    if check.stale:
        text += f" {len(check.stale)} explanation(s) match nothing any more."
    if check.exit_code == 1 and check.undecided:
        text += f" About {len(check.undecided)} case(s) nothing can be said."
    return text


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
    lines += [f"Engine: {check.engine}, {check.gpu}. {check.same} case(s) behave the same."]
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
    return "\n".join(lines) + "\n"


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
        "environment": {name: {"old": old, "new": new} for name, (old, new) in check.environment.items()},
        "findings": [_finding(finding, check, catalogue) for finding in check.findings],
        "stale": [{"case": e.case, "from": e.start, "to": e.end, "change": e.change} for e in check.stale],
    }
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def to_junit(check: Check) -> str:
    """JUnit XML: a test a finding; unexplained news fail, what cannot be told is skipped."""
    failures, skipped = len(check.unexplained) + len(check.stale), len(check.undecided)
    total = str(len(check.findings) + len(check.stale) + check.same)
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
        "explained_by": [{"from": e.start, "to": e.end, "why": e.why, "link": e.link} for e in finding.explained_by],
        "reproduce": reproduction(check, finding.change.case),
    }


def _linked(text: str, link: str) -> str:
    return f"[{escape(text)}]({link})" if link else escape(text)


def _plain(text: str) -> str:
    """Text without the control characters that XML does not take."""
    return "".join(character if character.isprintable() else "�" for character in text)
