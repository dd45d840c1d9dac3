"""Changes for programs: `changes.json`, and an Atom feed with an entry a release and machine. Dates are torch's release dates."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from replaydrift import releases
from replaydrift.changes import CHANGES, NEWS
from replaydrift.check import Check
from replaydrift.errors import ReleaseError
from replaydrift.report.checks import HEADINGS, answer, to_json
from replaydrift.report.cost_words import COST_HEADINGS
from replaydrift.report.html.paths import case_page, release_page
from replaydrift.report.html.text import visible
from replaydrift.report.overview import Overview

SCHEMA = 1
_ATOM = "http://www.w3.org/2005/Atom"
_UNDATED = "1970-01-01"  # Atom asks for a date; a nightly or a release that the table lacks has none that two runs would agree on.


def release_dates(names: Iterable[str]) -> dict[str, str]:
    """The date of each of these releases that torch-releases.toml lists, as `2026-11-05`; none where there is no table."""
    try:
        table = releases.read_table()
    except ReleaseError:
        return {}
    entries = {name: table.find(releases.Release.parse(name).version) for name in names}
    return {name: entry.date.isoformat() for name, entry in entries.items() if entry is not None}


def changes_json(report: Overview) -> str:
    """Every machine's changes on arriving at each release, in the form of `replaydrift check --json`, oldest first."""
    machines = [
        {
            "machine": machine.machine,
            "engine": machine.engine,
            "modelled": machine.engine == "model",
            "gpu": machine.gpu,
            "releases": list(machine.releases),
            "arrivals": [json.loads(to_json(check, report.catalogue)) for check in machine.arrivals],
        }
        for machine in report.machines
    ]
    return json.dumps({"schema": SCHEMA, "machines": machines}, indent=1, ensure_ascii=False) + "\n"


def atom(report: Overview) -> str:
    """An Atom feed, the newest release first; links are relative to the feed, so that it works from any host and from disk."""
    checks = [check for machine in report.machines for check in machine.arrivals]
    dates = release_dates({check.new for check in checks})
    checks.sort(key=lambda check: (releases.order(check.new), check.machine), reverse=True)
    feed = ET.Element("feed", {"xmlns": _ATOM})
    _leaf(feed, "id", uuid.uuid5(uuid.NAMESPACE_URL, "replaydrift/changes").urn)
    _leaf(feed, "title", "replaydrift: what torch releases change for captured CUDA graphs")
    _leaf(feed, "updated", _moment(max(dates.values(), default=_UNDATED)))
    ET.SubElement(feed, "link", {"rel": "self", "href": "changes.atom"})
    ET.SubElement(feed, "link", {"rel": "alternate", "href": "index.html", "type": "text/html"})
    _leaf(ET.SubElement(feed, "author"), "name", "replaydrift")
    for check in checks:
        _entry(feed, check, dates)
    ET.indent(feed)
    return ET.tostring(feed, encoding="unicode", xml_declaration=True).replace("encoding='us-ascii'", "encoding='utf-8'") + "\n"


def _entry(feed: ET.Element, check: Check, dates: Mapping[str, str]) -> None:
    entry = ET.SubElement(feed, "entry")
    modelled = " (modelled)" if check.engine == "model" else ""
    _leaf(entry, "id", uuid.uuid5(uuid.NAMESPACE_URL, f"replaydrift/{check.machine}/{check.old}/{check.new}").urn)
    _leaf(entry, "title", f"torch {check.new} on {check.machine}{modelled}: {summary(check)}")
    _leaf(entry, "updated", _moment(dates.get(check.new, _UNDATED)))
    ET.SubElement(entry, "link", {"rel": "alternate", "href": release_page(check.new), "type": "text/html"})
    lines = [f"From {check.old} to {check.new} on {check.machine}, engine {check.engine}, {check.gpu}. {answer(check)}"]
    lines += [f"{HEADINGS[finding.change.change]}: {finding.change.case} ({case_page(finding.change.case)}): {finding.change.why}"
              for finding in check.findings if finding.change.change in NEWS]  # fmt: skip
    if check.costs is not None and check.costs.news:
        lines.append(f"{COST_HEADINGS['changed']}: {len(check.costs.news)} costs, {len(check.unexplained_costs)} of them unexplained (costs.html)")
    content = ET.SubElement(entry, "content", {"type": "text"})
    content.text = visible("\n".join(lines))


def summary(check: Check) -> str:
    """How many of each kind of change, the dangerous first: `1 now-wrong, 2 error-changed`; `nothing changed`."""
    counts = Counter(finding.change.change for finding in check.findings)
    told = [f"{counts[change]} {change}" for change in CHANGES if counts[change]]
    if check.costs is not None and check.costs.news:
        told.append(f"{len(check.costs.news)} cost-changed")
    return ", ".join(told) or "nothing changed"


def _moment(date: str) -> str:
    return f"{date}T00:00:00Z"


def _leaf(parent: ET.Element, name: str, text: Any) -> None:
    ET.SubElement(parent, name).text = visible(text)
