"""`replaydrift show CASE`: the case as a script."""

from __future__ import annotations

from pathlib import Path

import click

from replaydrift.commands import options
from replaydrift.script import find_case, script_of


@click.command()
@click.argument("case")
@options.cases_dir
def command(case: str, cases_dir: Path | None) -> None:
    """Print CASE (such as shared-pool/bug) as a script that runs by itself: it needs torch and nothing else.

    The script prints what the case shows beside what is right, and exits with 1 where they differ.
    """
    library = options.catalogue_of(cases_dir).library
    click.echo(script_of(find_case(library, case)), nl=False)
