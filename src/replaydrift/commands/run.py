"""`replaydrift run`: the cases on one torch release."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from replaydrift.commands import options
from replaydrift.progress import progress
from replaydrift.store import Store
from replaydrift.sweep import Swept, Wishes, sweep
from replaydrift.verdicts import GLYPHS, VERDICTS, Summary, summarise


class Size(click.ParamType):  # type: ignore[type-arg]
    """`NAME=INT`, as a pair."""

    name = "NAME=INT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The pair; a usage error where the text is none."""
        name, _, number = str(value).partition("=")
        if not name.isidentifier() or not number.isdecimal():
            self.fail(f"found {value!r}, expected NAME=INT, such as elements=1048576", param, ctx)
        return name, int(number)


@click.command()
@click.option("--python", default=sys.executable, show_default="this one", metavar="PATH", help="The Python whose torch runs the cases.")
@click.option("--release", metavar="RELEASE", help="What must be imported, such as 2.14.1 or 2.14.1+cu130; anything else stops the run.")
@options.patterns
@options.cases_dir
@options.engine
@options.attempts
@options.jobs
@options.results
@options.new_machine
@options.note
@click.option("--size", "sizes", multiple=True, type=Size(), help="For every case that takes it: elements=1048576.  [repeatable]")
@options.limit
@options.resume
@options.fresh
@options.as_json
def command(
    python: str,
    release: str | None,
    patterns: tuple[str, ...],
    cases_dir: Path | None,
    engine: str,
    attempts: int,
    jobs: int | None,
    results: Path,
    machine: str | None,
    note: str,
    sizes: tuple[tuple[str, int], ...],
    limit_s: float | None,
    resume: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Run the cases on one torch release and store what happened.

    Every attempt has a process of its own, so a case that crashes, hangs or eats memory harms only its own outcome. The torch that
    runs is that of --python, any Python from 3.10 on; it need not have replaydrift.
    """
    options.check_either(resume, fresh)
    catalogue = options.catalogue_of(cases_dir)
    wishes = Wishes(
        python=python,
        release=release,
        engine=engine,
        attempts=attempts,
        jobs=jobs,
        machine=machine,
        note=note,
        sizes=dict(sizes),
        limit_s=limit_s,
        resume=resume,
        fresh=fresh,
    )
    with progress() as watcher:
        swept = sweep(wishes, catalogue, catalogue.library.select(patterns), Store(results), watcher)
    summaries = {record.case: summarise(record) for record in swept.records}
    if as_json:
        click.echo(json.dumps(_tree(swept, summaries), indent=1))
    else:
        _show(swept, summaries)


def _tree(swept: Swept, summaries: dict[str, Summary]) -> dict[str, object]:
    """What a program reads."""
    return {
        "release": swept.environment.release,
        "engine": swept.environment.engine,
        "machine": swept.environment.machine,
        "folder": str(swept.folder),
        "verdicts": _counts(summaries),
        "cases": {
            record.case: {
                "kind": record.kind,
                "verdict": summaries[record.case].verdict,
                "outcomes": dict(summaries[record.case].counts),
                "observed": record.attempts[0].observed,
            }
            for record in swept.records
        },
    }


def _counts(summaries: dict[str, Summary]) -> dict[str, int]:
    """How many cases have each verdict, in the order of `VERDICTS`."""
    counted = Counter(summary.verdict for summary in summaries.values())
    return {word: counted[word] for word in VERDICTS if counted[word]}


def _show(swept: Swept, summaries: dict[str, Summary]) -> None:
    """What a person reads: how many of each verdict, and the cases that went other than their kind wishes."""
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    table = Table("", "verdict", "cases", box=None, pad_edge=False, header_style="bold")
    for word, count in _counts(summaries).items():
        table.add_row(GLYPHS[word], word, str(count))
    console.print(table)
    other = [record for record in swept.records if summaries[record.case].verdict not in ("reproduced", "holds")]
    if other:
        table = Table("", "case", "verdict", "outcome", box=None, pad_edge=False, header_style="bold")
        for record in other:
            summary = summaries[record.case]
            outcome = summary.counts[0][0] if summary.unanimous else summary.rates
            table.add_row(GLYPHS[summary.verdict], escape(record.case), summary.verdict, escape(outcome))
        console.print("\nNeither reproduced nor holding:")
        console.print(table)
    console.print(f"\n{len(swept.records)} cases of torch {swept.environment.release} in {swept.folder}")
