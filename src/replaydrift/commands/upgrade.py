"""`replaydrift upgrade --python OLD=PATH --python NEW=PATH`: run both releases in turns, then check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from replaydrift.catalogue import Catalogue
from replaydrift.commands import check, options
from replaydrift.commands.measure import VisitProgress
from replaydrift.costs.blocks import CostWishes
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.visits import UnmeasuredError, measure
from replaydrift.library import Case
from replaydrift.progress import progress
from replaydrift.store import Store
from replaydrift.sweep import Wishes
from replaydrift.upgrade import Side, upgrade


@click.command()
@click.option(
    "--python", "pythons", multiple=True, required=True, type=options.Interpreter(),
    help="Twice: the old release and the Python that has it, then the new one.",
)  # fmt: skip
@options.patterns
@options.cases_dir
@options.engine
@options.attempts
@options.jobs
@options.results
@options.new_machine
@options.note
@options.limit
@options.visits
@click.option("--no-costs", "without_costs", is_flag=True, help="Measure no costs.")
@options.resume
@options.fresh
@click.pass_context
def command(
    ctx: click.Context,
    pythons: tuple[tuple[str, str], ...],
    patterns: tuple[str, ...],
    cases_dir: Path | None,
    engine: str,
    attempts: int,
    jobs: int | None,
    results: Path,
    machine: str | None,
    note: str,
    limit_s: float | None,
    visits: int | None,
    without_costs: bool,
    resume: bool,
    fresh: bool,
    explanations: Path,
    form: str | None,
) -> None:
    """Run the cases on two torch releases in turns, run again whatever differs, and print the check.

    Each round is one attempt a case on both releases, old and new beginning in turn. A case that differs gets three more
    attempts on both sides, one whose attempts disagree seven in all, and every attempt counts. Then costs are measured in turns
    too, as `replaydrift measure` does. The exit code is that of `replaydrift check`.
    """
    if len(pythons) != 2:
        raise click.UsageError(f"found --python {len(pythons)} time(s), expected it twice: --python OLD=PATH --python NEW=PATH")
    options.check_either(resume, fresh)
    catalogue = options.catalogue_of(cases_dir)
    old, new = (Side(release, python) for release, python in pythons)
    wishes = Wishes(
        python=old.python,
        engine=engine,
        attempts=attempts,
        jobs=jobs,
        machine=machine,
        note=note,
        limit_s=limit_s,
        resume=resume,
        fresh=fresh,
    )
    cases = catalogue.library.select(patterns)
    costs = CostWishes(pythons, "upgrade", visits, engine, machine, note=note, every=bool(patterns), resume=not fresh, fresh=fresh)

    with progress() as watcher:

        def then() -> None:
            if not without_costs:
                _measure(costs, catalogue, cases, CostStore(results), VisitProgress(watcher), watcher.say)

        done = upgrade(
            old, new, wishes, catalogue, cases, Store(results), watcher, watcher.say, then,
        )  # fmt: skip
    ctx.invoke(
        check.command, old=done.old, new=done.new, results=results, machine=done.machine, patterns=patterns, cases_dir=cases_dir,
        explanations=explanations, form=form, with_costs=not without_costs,
    )  # fmt: skip


def _measure(
    wishes: CostWishes, catalogue: Catalogue, cases: Iterable[Case], store: CostStore, watcher: VisitProgress, say: Callable[[str], None],
) -> None:  # fmt: skip
    """Measure the block of an upgrade. Where a release cannot be measured, the verdicts are no worse for it: that is said, and no error."""
    try:
        measure(wishes, catalogue, cases, store, watcher)
    except UnmeasuredError as error:
        say(f"costs: {error}")


# How a check is printed is said once, there.
command.params += [option for option in check.command.params if option.name in ("explanations", "form")]
