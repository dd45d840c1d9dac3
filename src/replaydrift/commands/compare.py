"""`replaydrift compare --results A --results B`: my GPU against the reference."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.commands import options
from replaydrift.comparison import Comparison, compare_stores
from replaydrift.store import Store


@click.command()
@click.option(
    "--results", "stores", type=click.Path(path_type=Path, file_okay=False, exists=True), multiple=True, required=True,
    help="A store; give it twice, or once with two machines.",
)  # fmt: skip
@click.option("--machine", "machines", multiple=True, help="A machine of the first store, then one of the second.")
@click.option("--release", help="Only this torch release.  [default: all that both have]")
@options.as_json
def command(stores: tuple[Path, ...], machines: tuple[str, ...], release: str | None, as_json: bool) -> None:
    """Set the results of two machines side by side, release by release. It lists differences and gates nothing: exit code 0."""
    if len(stores) > 2 or len(machines) > 2:
        raise click.UsageError(f"found {len(stores)} --results and {len(machines)} --machine: expected at most two of each")
    left, right = Store(stores[0]), Store(stores[-1])
    chosen = (*machines, None, None)
    first, second = (
        left.machine(chosen[0]),
        right.machine(chosen[1] if len(machines) != 1 or len(stores) == 1 else chosen[0]),
    )
    if (stores[0].resolve(), first) == (stores[-1].resolve(), second):
        raise click.UsageError(f"both sides are machine {first!r} of {str(stores[0])!r}: name another store or another machine")
    found = compare_stores(left, first, right, second, release)
    if as_json:
        click.echo(json.dumps([_tree(comparison) for comparison in found], indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for comparison in found:
        _print(comparison, console)


def _print(comparison: Comparison, console: Console) -> None:
    left, right = comparison.left.environment, comparison.right.environment
    console.print(Text(f"torch {left.release} on {left.machine} | torch {right.release} on {right.machine}", style="bold"))
    for name, (ours, theirs) in comparison.environment.items():
        console.print(Text(f"  {name}: {ours} | {theirs}", style="dim"))
    if comparison.differing:
        table = Table("case", "difference", "left → right", box=None, header_style="bold")
        for change in comparison.differing:
            table.add_row(Text(change.case), Text(change.change), Text(change.why))
        console.print(table)
    skipped = f" {comparison.skipped} skipped on both." if comparison.skipped else ""
    console.print(Text(f"  {comparison.same} case(s) behave the same, {len(comparison.differing)} do not or cannot be compared.{skipped}\n"))


def _tree(comparison: Comparison) -> dict[str, object]:
    left, right = comparison.left.environment, comparison.right.environment
    return {
        "left": {"machine": left.machine, "release": left.release, "gpu": left.gpu},
        "right": {"machine": right.machine, "release": right.release, "gpu": right.gpu},
        "same": comparison.same,
        "skipped": comparison.skipped,
        "differing": [{"case": c.case, "difference": c.change, "why": c.why} for c in comparison.differing],
    }
