"""`replaydrift publish`: the report and asv's site, from the store alone."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from replaydrift.commands import options
from replaydrift.explanations import FILE
from replaydrift.publishing import Known, publish_report, stale_files
from replaydrift.store import Store


@click.command()
@options.results
@options.cases_dir
@click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports"),
    show_default=True,
    help="Where the report goes.",
)
@click.option("--explanations", type=click.Path(path_type=Path, dir_okay=False), default=FILE, show_default=True)
@click.option(
    "--readme",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="A file whose marked matrix is brought up to date.",
)
@click.option(
    "--asv/--no-asv",
    "asv",
    default=True,
    show_default=True,
    help="Whether to build asv's site as well, in REPORTS/asv.",
)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; exit with 1 where committed files are not what the store gives.",
)
def command(
    results: Path, cases_dir: Path | None, reports: Path, explanations: Path, readme: Path | None, asv: bool, only_check: bool,
) -> None:  # fmt: skip
    """Write REPORTS/index.md, the HTML report and asv's site, all made from the store, the cases and explanations.toml."""
    store, catalogue, known = Store(results), options.catalogue_of(cases_dir), Known.read(explanations)
    if only_check:
        stale = stale_files(store, catalogue, known, reports, readme)
        for path in stale:
            click.echo(f"{path} is not what the store gives: run `replaydrift publish` and commit it", err=True)
        sys.exit(1 if stale else 0)
    written = publish_report(store, catalogue, known, reports, readme)
    click.echo(f"{len(written)} files written; open {reports / 'index.html'}")
    if asv:
        from replaydrift.history import publish  # noqa: PLC0415  asv is slow to import and not needed for the report

        publish(store, reports / "asv")
