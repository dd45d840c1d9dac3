"""`replaydrift agreement`: the CPU model against GPU records."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.agreement import ASPECTS, CaseAgreement, agreement_of
from replaydrift.commands import options
from replaydrift.errors import StoreError
from replaydrift.store import Store


@click.command()
@options.results
@options.as_json
def command(results: Path, as_json: bool) -> None:
    """Hold the CPU model's records against those of GPUs: outcome, strip, error classes and addresses of each case."""
    found = agreement_of(Store(results).sweeps())
    if not found:
        raise StoreError(
            f"nothing to hold side by side in {str(results)!r}: expected results of engine 'cuda' and of engine 'model' on one "
            "version of torch; run one of them: nox -s matrix -- --engine model",
        )
    if as_json:
        click.echo(json.dumps([_tree(agreed) for agreed in found], indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for (machine, release), rows in groupby(found, key=lambda agreed: (agreed.machine, agreed.release)):
        _print(machine, release, list(rows), console)


def _print(machine: str, release: str, rows: list[CaseAgreement], console: Console) -> None:
    console.print(Text(f"torch {release}: model against {machine}", style="bold"))
    for aspect in ASPECTS:
        arising = [row for row in rows if row.aspects[aspect] is not None]
        agreeing = sum(bool(row.aspects[aspect]) for row in arising)
        console.print(Text(f"  {aspect}: {agreeing} of {len(arising)}"))
    resting = sum(bool(row.rules) for row in rows)
    console.print(Text(f"  {resting} of {len(rows)} cases rest on a written rule, which is no evidence of its own.", style="dim"))
    table = Table("case", "what differs (GPU | model)", box=None, header_style="bold")
    for row in rows:
        if not row.agrees:
            table.add_row(Text(row.case), Text(row.why))
    if table.row_count:
        console.print(table)


def _tree(agreed: CaseAgreement) -> dict[str, object]:
    return {
        "case": agreed.case,
        "release": agreed.release,
        "machine": agreed.machine,
        "agrees": agreed.agrees,
        "aspects": dict(agreed.aspects),
        "rules": list(agreed.rules),
        "why": agreed.why,
    }
