"""The page that asv's links to a commit lead to: what each commit of the derived repository stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from replaydrift.history.chain import Step
from replaydrift.history.result_files import Machine
from replaydrift.releases import Release
from replaydrift.report.html.paths import release_page

_HEAD: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Releases of torch as commits</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color-scheme: light dark }
td, th { text-align: left; padding: .2em 1em .2em 0; vertical-align: top } tr:target { outline: 3px solid #06c }
code { font-size: 90% }
</style>
<h1>Releases of torch as commits</h1>
<p>asv draws along a repository made from <code>torch-releases.toml</code>: each of its commits is a release.
<a href="index.html">Back to asv</a>, <a href="../index.html">to the report</a>.</p>
<table>
<tr><th>release<th>date<th>default wheel<th>commit<th>results</tr>
"""


def releases_page(machines: Sequence[Machine], chain: Sequence[Step], commits: Mapping[str, str]) -> str:
    """HTML, newest release first; the anchor of a row is the first eight digits of its commit."""
    stored: dict[str, dict[str, list[str]]] = {}
    for machine in machines:
        for recorded in machine.releases:
            stored.setdefault(Release.parse(recorded.release).version, {}).setdefault(recorded.release, []).append(machine.name)
    rows = [_row(step, commits[step.version][:8], stored.get(step.version, {})) for step in reversed(chain)]
    return _HEAD + "".join(rows) + "</table>\n</html>\n"


def _row(step: Step, commit: str, stored: Mapping[str, Sequence[str]]) -> str:
    results = "; ".join(
        f'<a href="../{escape(release_page(release))}">{escape(release)}</a> on {escape(", ".join(names))}'
        for release, names in stored.items()
    )
    cuda = f"CUDA {escape(step.cuda)}" if step.cuda else "not known"
    date = f'<span title="{escape(step.dated)}">{step.date}</span>'
    return f'<tr id="{commit}"><td>{escape(step.version)}<td>{date}<td>{cuda}<td><code>{commit}</code><td>{results or "none"}</tr>\n'
