"""`replaydrift measure`: what capture, replay, padding and bucketing cost, on one release or several in turns."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import TracebackType

import click
from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from replaydrift.commands import options
from replaydrift.commands.run import Size
from replaydrift.costs import suite
from replaydrift.costs.blocks import CostWishes
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.metrics import METRICS, is_headline
from replaydrift.costs.records import PURPOSES, Block, Costs, Purpose, Visit
from replaydrift.costs.visits import Measured, measure
from replaydrift.progress import LiveProgress, PlainProgress

_SHOWN = ("replay_gpu_us", "replay_host_us", "capture_ms", "instantiate_ms", "trace_gpu_ms", "nodes", "graphs", "pool_bytes")
# Of more subjects than a screen shows, those that the gate looks at are printed.
_ON_A_SCREEN = 40


class Plant(click.ParamType):  # type: ignore[type-arg]
    """`SUBJECT:gpu=1.05` or `SUBJECT:host=1.05`, as a subject with a factor of its work."""

    name = "SUBJECT:gpu=FACTOR"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str, float]:
        """Subject, `gpu` or `host`, and factor; a usage error where the text is none."""
        subject, _, rest = str(value).rpartition(":")
        kind, _, factor = rest.partition("=")
        try:
            number = float(factor)
        except ValueError:
            number = 0.0
        if not subject or kind not in ("gpu", "host") or not 1 <= number < 100:
            self.fail(f"found {value!r}, expected SUBJECT:gpu=FACTOR or SUBJECT:host=FACTOR, such as chain/1000:gpu=1.05", param, ctx)
        return subject, kind, number


@click.command()
@click.option(
    "--python", "pythons", multiple=True, type=options.Either(), show_default="this one",
    help="A Python whose torch is measured; with RELEASE= anything else that it imports stops the run.  [repeatable]",
)  # fmt: skip
@options.visits
@click.option("--subjects", multiple=True, metavar="PATTERN", help="Only these: chain/*, bucketing/decoder/*, rng/*.  [repeatable]")
@options.patterns
@click.option("--every-case", is_flag=True, help="Measure everything in every visit, no shares; with --subjects or --cases that is so.")
@options.cases_dir
@options.engine
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), default=suite.SECONDS, show_default=True, help="What a visit aims at.",
)  # fmt: skip
@options.results
@options.new_machine
@click.option("--block", metavar="NAME", help="The folder of the block.  [default: time and purpose]")
@click.option("--purpose", type=click.Choice(PURPOSES), default="measure", show_default=True, help="What the block is for.")
@click.option("--plant", "plants", multiple=True, type=Plant(), help="Slow a subject down on purpose, to see whether it is found.  [repeatable]")
@click.option("--size", "sizes", multiple=True, type=Size(), help="For every case that takes it: elements=1048576.  [repeatable]")
@options.note
@options.resume
@options.fresh
@options.as_json
def command(
    pythons: tuple[tuple[str | None, str], ...],
    visits: int | None,
    subjects: tuple[str, ...],
    patterns: tuple[str, ...],
    every_case: bool,
    cases_dir: Path | None,
    engine: str,
    seconds: float,
    results: Path,
    machine: str | None,
    block: str | None,
    purpose: Purpose,
    plants: tuple[tuple[str, str, float], ...],
    sizes: tuple[tuple[str, int], ...],
    note: str,
    resume: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Measure what capture, replay, padding and bucketing cost, and store it as a block.

    Each visit is one process of one release; several releases are visited in turns, A B C, then C B A, and so on, since only costs
    measured together compare. Every visit measures all that the gate looks at, and a share of the rest. It is stored when it
    ends. On the CPU model only what can be counted is stored.
    """
    options.check_either(resume, fresh)
    catalogue = options.catalogue_of(cases_dir)
    planted: dict[str, dict[str, float]] = {}
    for subject, kind, factor in plants:
        planted.setdefault(subject, {})[kind] = factor
    wishes = CostWishes(
        pythons=pythons or ((None, sys.executable),),
        purpose=purpose,
        visits=visits,
        engine=engine,
        machine=machine,
        block=block,
        note=note,
        subjects=subjects,
        every=bool(every_case or subjects or patterns),
        seconds=seconds,
        sizes=dict(sizes),
        plant=planted,
        resume=resume,
        fresh=fresh,
    )
    with VisitProgress() as watcher:
        measured = measure(wishes, catalogue, catalogue.library.select(patterns), CostStore(results), watcher)
    if as_json:
        click.echo(json.dumps(_tree(measured), indent=1))
    else:
        _show(measured)


class VisitProgress:
    """A line a visit on stderr, and on a terminal what is measured now. `beside` is a bar that is up already, to speak through."""

    def __init__(self, beside: PlainProgress | LiveProgress | None = None) -> None:
        console = Console(stderr=True)
        live = beside is None and console.is_terminal and not console.is_dumb_terminal
        self._status = Status("", console=console) if live else None
        self._moment: Callable[[str], object] | None = None
        self._say: Callable[[str], object] = lambda line: click.echo(line, err=True)
        if (live_status := self._status) is not None:
            self._moment = lambda what: live_status.update(escape(what))
            self._say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        elif beside is not None:
            self._moment, self._say = beside.doing if isinstance(beside, LiveProgress) else None, beside.say
        self._total = self._done = self._subjects = self._made = 0
        self._begun = time.monotonic()

    def doing(self, what: str) -> None:
        """Say what has begun."""
        (self._moment or self._say)(what)

    def begun(self, block: Block, done: int) -> None:
        """Say what will be visited how often."""
        self._total, self._done, self._begun = len(block.order), done, time.monotonic()
        before = f", {done} of them made before" if done else ""
        self._say(f"block {block.name}: {self._total} visits to torch {', '.join(block.releases)}{before}")

    def measured(self, subject: str) -> None:
        """Show how far the visit is."""
        self._subjects += 1
        if self._moment is not None:
            self._moment(f"visit {self._done + 1} of {self._total}: {self._subjects} subjects, {subject}")

    def visited(self, release: str, visit: Visit) -> None:
        """Say what the visit came to, and how long the rest takes."""
        self._subjects = 0
        self._made += 1
        if visit.discarded:
            self._say(f"visit {visit.number}, torch {release}: discarded, {visit.discarded}")
            return
        self._done += 1
        failed = sum(bool(subject.failed) for subject in visit.subjects.values())
        words = f"{len(visit.subjects)} subjects" + (f", {failed} of them could not be measured" if failed else "")
        left = (time.monotonic() - self._begun) / self._made * (self._total - self._done)
        rest = f"  ({left:.0f} s left)" if 0 < left < 100 else f"  ({left / 60:.0f} min left)" if left else ""
        self._say(f"[{self._done}/{self._total}] torch {release}: {words}, {visit.seconds:g} s{rest}")

    def __enter__(self) -> VisitProgress:  # noqa: PYI034 - Self came with Python 3.11
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()


def _failures(costs: Costs) -> dict[str, str]:
    """The subjects that could not be measured, with the reason of the last visit."""
    return {name: subject.failed for visit in costs.kept for name, subject in visit.subjects.items() if subject.failed}


def _tree(measured: Measured) -> dict[str, object]:
    """What a program reads: what a block came to; the numbers are in the store."""
    return {
        "machine": measured.costs[0].environment.machine,
        "engine": measured.costs[0].environment.engine,
        "block": measured.block.name,
        "purpose": measured.block.purpose,
        "folder": str(measured.folder),
        "releases": {
            costs.environment.release: {
                "visits": len(costs.kept),
                "discarded": [visit.discarded for visit in costs.visits if visit.discarded],
                "subjects": len(costs.subjects),
                "failed": _failures(costs),
            }
            for costs in measured.costs
        },
    }


def _show(measured: Measured) -> None:
    """What a person reads: medians over visits of the metrics that people look at first, then what could not be measured."""
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    for costs in measured.costs:
        medians: dict[str, dict[str, float]] = {}
        for subject, metric, values in costs.series():
            medians.setdefault(subject, {})[metric] = median(values)
        shown = [metric for metric in _SHOWN if any(metric in found for found in medians.values())]
        table = Table(f"torch {costs.environment.release}", *shown, box=None, pad_edge=False, header_style="bold")
        rows = {subject: found for subject, found in medians.items() if any(metric in found for metric in shown)}
        first = rows if len(rows) <= _ON_A_SCREEN else [subject for subject in rows if any(is_headline(subject, name) for name in METRICS)]
        for subject in first:
            table.add_row(subject, *(_number(rows[subject][metric]) if metric in rows[subject] else "" for metric in shown))
        console.print(table)
        if len(rows) > len(first):
            console.print(f"and {len(rows) - len(first)} more subjects, which `replaydrift publish` shows")
        failures = _failures(costs)
        if failures:
            name, why = next(iter(failures.items()))
            console.print(escape(f"\n{len(failures)} could not be measured, such as {name}: {why}"))
        planned = len(measured.block.numbers(costs.environment.release))
        console.print(f"{len(costs.kept)} of {planned} visits of torch {costs.environment.release}, machine {costs.environment.machine!r}\n")
    if all(METRICS[metric].exact for costs in measured.costs for _, metric, _ in costs.series()):
        console.print("Only what can be counted is here: times of the CPU model are no costs.")
    console.print(f"Block {measured.block.name} in {measured.folder}", soft_wrap=True)


def _number(value: float) -> str:
    """A whole number with all its digits, any other with six."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.6g}"
