"""`replaydrift aa`: a release against itself. Does the gate of costs keep its word, and what would it find?"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from replaydrift.commands import options
from replaydrift.costs.calibration import SPLITS, calibrate, planted
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.records import Costs
from replaydrift.costs.statistics import NEEDED
from replaydrift.errors import StoreError
from replaydrift.report.calibration_text import print_calibration, print_planted
from replaydrift.stored_releases import resolve


@click.command()
@options.results
@options.machine
@click.option("--block", metavar="NAME", help="The block of the run.  [default: the newest that was measured for an A/A run]")
@click.option("--release", help="Which release of the block, where it holds several.")
@click.option("--side", type=click.IntRange(min=2), default=NEEDED, show_default=True, help="Visits a side.")
@click.option("--splits", type=click.IntRange(min=1), default=SPLITS, show_default=True, help="Random splits, at most all there are.")
@click.option("--planted", "slowed", metavar="NAME", help="A block of the same release with planted slow-downs: are they found?")
@options.as_json
def command(
    results: Path, machine: str | None, block: str | None, release: str | None, side: int, splits: int, slowed: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Split the visits of one release at random into two sides, many times, and say how often the gate calls a change.

    Then it says how noisy each metric is, which margin it needs, and which slow-downs would be found. Exit code 0: no more false
    alarms than the nominal rate, and enough of the slow-downs are found that must be. 1: one of the two is not so.
    """
    store = CostStore(results)
    costs = _read(store, machine or _only_machine(store), block, release)
    found = calibrate(costs, side, splits)
    slow = _read(store, costs.environment.machine, slowed, costs.environment.release) if slowed else None
    tests = planted(costs, slow, side, splits) if slow else ()
    if as_json:
        tree = asdict(found) | {"calibrated": found.calibrated, "power": found.power, "sharp": found.sharp}
        click.echo(json.dumps(tree | {"planted": [asdict(one) for one in tests]}, indent=1))
    else:
        console = Console(width=None if Console().is_terminal else 160, highlight=False)
        print_calibration(found, console)
        if slow:
            print_planted(tests, slow.block.name, console)
    sys.exit(0 if found.calibrated and found.sharp else 1)


def _only_machine(store: CostStore) -> str:
    """The machine that has costs; StoreError where there is none, or a choice."""
    known = store.machines()
    if len(known) != 1:
        todo = "say which with --machine NAME" if known else "measure an A/A run with `nox -s aa`"
        raise StoreError(f"{str(store.root)!r} holds costs of {len(known)} machines ({', '.join(known) or 'none'}): {todo}")
    return known[0]


def _read(store: CostStore, machine: str, block: str | None, release: str | None) -> Costs:
    """The costs of one release in a block, the newest A/A run where none is named; StoreError says what there is instead."""
    known = store.blocks(machine, planted=True)
    if block is None:
        runs = [name for name in reversed(known) if any(costs.block.purpose == "aa" for costs in store.read_block(machine, name))]
        if not runs:
            raise StoreError(
                f"machine {machine!r} has no A/A run among its blocks ({', '.join(known) or 'none'}): measure one with `nox -s aa`, "
                "or name a block that has enough visits of one release with --block NAME",
            )
        block = runs[0]
    if block not in known:
        raise StoreError(f"no block {block!r} on machine {machine!r}: blocks there are {', '.join(known) or 'none'}")
    there = store.releases(machine, block)
    if release is None and len(there) > 1:
        raise StoreError(f"block {block!r} holds {', '.join(there)}: say which with --release")
    return store.read(machine, block, there[0] if release is None else resolve(release, there))
