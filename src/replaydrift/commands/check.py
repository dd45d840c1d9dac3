"""`replaydrift check OLD NEW`: may I upgrade?"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from replaydrift import releases, stored_releases
from replaydrift.check import check
from replaydrift.commands import options
from replaydrift.costs.cost_store import CostStore
from replaydrift.explanations import FILE, read_explanations
from replaydrift.guide import guide
from replaydrift.report.check_text import print_check
from replaydrift.report.checks import to_json, to_junit, to_markdown
from replaydrift.report.guide_text import to_guide
from replaydrift.store import Store


@click.command()
@click.argument("old")
@click.argument("new")
@options.results
@options.machine
@options.patterns
@options.cases_dir
@click.option(
    "--explanations",
    type=click.Path(path_type=Path, dir_okay=False),
    default=FILE,
    show_default=True,
    help="Known changes and why.",
)
@click.option("--costs/--no-costs", "with_costs", default=True, help="Whether costs count, where they were measured.  [default: they do]")
@click.option("--markdown", "form", flag_value="markdown", help="A comment for a pull request or a job's summary.")
@click.option("--guide", "form", flag_value="guide", help="A page for people about to upgrade: what to do, what is fixed, since when.")
@click.option("--json", "form", flag_value="json", help="For a program.")
@click.option("--junit", "form", flag_value="junit", help="JUnit XML, for a CI's test report.")
def command(
    old: str,
    new: str,
    results: Path,
    machine: str | None,
    patterns: tuple[str, ...],
    cases_dir: Path | None,
    explanations: Path,
    with_costs: bool,
    form: str | None,
) -> None:
    """Print what changed from torch OLD to torch NEW on one machine, the most dangerous first.

    Exit code 0: nothing unexplained (flaky cases are listed). 1: an unexplained change, or an explanation that matches
    nothing any more. 2: cannot tell, since results are missing, incomplete or not comparable, or a headline cost is undecided.
    """
    store = Store(results)
    machine = store.machine(machine)
    stored = store.releases(machine)
    catalogue = options.catalogue_of(cases_dir)
    chosen = {case.name for case in catalogue.library.select(patterns)}
    start, end = stored_releases.resolve(old, stored), stored_releases.resolve(new, stored)
    if start == end:
        listed = ", ".join(sorted(stored, key=releases.order))
        raise click.UsageError(f"OLD and NEW are both torch {start}: expected two releases; stored are {listed}")
    costs = CostStore(results) if with_costs else None
    if explanations != FILE and not explanations.is_file():
        raise click.UsageError(f"no file {str(explanations)!r}: name the one with your explanations, or leave --explanations out")
    entries = read_explanations(explanations)
    if form == "guide":
        written = guide(store, machine, start, end, chosen, entries, only=bool(patterns), costs=costs)
        click.echo(to_guide(written, catalogue), nl=False)
        sys.exit(written.check.exit_code)
    found = check(store, machine, start, end, chosen, entries, only=bool(patterns), costs=costs)
    if form == "markdown":
        click.echo(to_markdown(found, catalogue), nl=False)
    elif form == "json":
        click.echo(to_json(found, catalogue), nl=False)
    elif form == "junit":
        click.echo(to_junit(found), nl=False)
    else:
        print_check(found, catalogue, Console(highlight=False))
    sys.exit(found.exit_code)
