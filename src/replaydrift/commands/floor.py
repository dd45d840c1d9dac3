"""`replaydrift floor CASE...`: works from which release?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.commands import options
from replaydrift.floor import Floor, floor_of
from replaydrift.store import Store


@click.command()
@click.argument("patterns", nargs=-1, required=True, metavar="CASE...")
@options.results
@options.machine
@options.cases_dir
@options.as_json
def command(patterns: tuple[str, ...], results: Path, machine: str | None, cases_dir: Path | None, as_json: bool) -> None:
    """Say from which stored release on each CASE (or pattern) gives the right values, and from which all of them do.

    Exit code 0 where all of them do from some release on, else 1.
    """
    store = Store(results)
    machine = store.machine(machine)
    names = [case.name for case in options.catalogue_of(cases_dir).library.select(patterns)]
    floor = floor_of(store, machine, names)
    if as_json:
        click.echo(json.dumps(_tree(floor), indent=1))
    else:
        _print(floor, Console(highlight=False))
    sys.exit(0 if floor.together else 1)


def _print(floor: Floor, console: Console) -> None:
    table = Table("case", "works from", "why not before", box=None, header_style="bold")
    for case in floor.cases:
        table.add_row(Text(case.case), Text(case.release or "no stored release"), Text(case.before))
    console.print(table)
    console.print(Text(f"All of them: {floor.together or 'no stored release'}", style="bold"))
    console.print(Text(f"Looked at {', '.join(floor.releases)} on {floor.machine} (engine {floor.engine}).", style="dim"))


def _tree(floor: Floor) -> dict[str, object]:
    return {
        "machine": floor.machine,
        "engine": floor.engine,
        "releases": list(floor.releases),
        "together": floor.together,
        "cases": [{"case": case.case, "works_from": case.release, "before": case.before} for case in floor.cases],
    }
