"""`replaydrift cases`: what there is to run."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from replaydrift.catalogue import Catalogue
from replaydrift.commands import options
from replaydrift.library import Case


@click.command()
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@options.cases_dir
@options.as_json
def command(patterns: tuple[str, ...], cases_dir: Path | None, as_json: bool) -> None:
    """List the cases that match any PATTERN (a group, or a shell pattern such as '*/bug'); all without one.

    Kinds: a `bug` is wrong when it is reproduced, a `fix` and a `behaviour` are right when they hold.
    """
    catalogue = options.catalogue_of(cases_dir)
    chosen = {case.name for case in catalogue.library.select(patterns)}
    cases = [case for case in catalogue.cases if case.name in chosen]
    if as_json:
        click.echo(json.dumps([_facts(case, catalogue) for case in cases], indent=1))
        return
    table = Table("case", "kind", "mechanism", "what a user may expect", box=None, pad_edge=False, header_style="bold")
    group = None
    for case in cases:
        if case.group != group:
            group = case.group
            table.add_section()
        table.add_row(case.name, case.kind, catalogue.notes[case.name].mechanism, case.summary)
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    groups = len({case.group for case in cases})
    console.print(f"{len(cases)} case{'s' * (len(cases) != 1)} in {groups} group{'s' * (groups != 1)}", style="dim")


def _facts(case: Case, catalogue: Catalogue) -> dict[str, object]:
    notes = catalogue.notes[case.name]
    return {
        "case": case.name,
        "kind": case.kind,
        "mechanism": notes.mechanism,
        "summary": case.summary,
        "meaning": notes.meaning,
        "file": f"{case.path}:{case.line}",
        "reference": case.reference,
        "version": case.version,
        "alone": notes.alone,
    }
