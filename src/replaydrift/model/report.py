"""The findings as a person reads them, and as JSON keeps them."""

from __future__ import annotations

import json
import linecache
import os
import textwrap
from typing import Any

from replaydrift.model.findings import KINDS, Finding, Findings
from replaydrift.model.observer_sites import Site

_WIDTH = 110


def as_text(findings: Findings, *, ended: bool = True) -> str:
    """The report: findings by kind, each with its lines of the script, why, and how to mend it; `ended` where the script ran to its end."""
    found = list(findings)
    if not found and not ended:
        return "replaydrift.model: found nothing up to where the script stopped; what comes after it was not looked at.\n"
    if not found:
        return "replaydrift.model: found nothing that the recording froze by mistake, as far as memory and order can tell.\n"
    lines = [f"replaydrift.model: {len(found)} finding{'s' * (len(found) != 1)}", ""]
    for finding in found:
        lines += [*_one(finding), ""]
    lines.append("Seen on a CPU model of CUDA graphs, not on hardware. It cannot see Python numbers and branches that a capture froze.")
    return "\n".join(lines) + "\n"


def _one(finding: Finding) -> list[str]:
    again = f" (seen {finding.times} times)" if finding.times > 1 else ""
    lines = [f"{_place(finding.at)}: {finding.kind}: {KINDS[finding.kind]}{again}", *_code(finding.at)]
    lines += textwrap.wrap(finding.why, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    lines += [f"    {role}: {_place(site)}{_beside(site)}" for role, site in finding.places]
    return lines + textwrap.wrap(f"Fix: {finding.fix}", _WIDTH, initial_indent="  ", subsequent_indent="       ")


def _place(site: Site) -> str:
    path = os.path.relpath(site.file) if not site.file.startswith("<") else site.file
    return f"{min(path, site.file, key=len)}:{site.line}"


def _code(site: Site) -> list[str]:
    text = linecache.getline(site.file, site.line).strip()
    return [f"  > {text}"] if text else []


def _beside(site: Site) -> str:
    text = linecache.getline(site.file, site.line).strip()
    return f"  {text}" if text else ""


def as_json(findings: Findings, facts: dict[str, Any]) -> str:
    """The report for a program: the model's facts, then the findings in the same order."""
    tree = {"schema": 1, "engine": "model", **facts, "findings": [finding.as_tree() for finding in findings]}
    return json.dumps(tree, indent=1) + "\n"
