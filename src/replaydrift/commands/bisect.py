"""`replaydrift bisect CASE --good OLD --bad NEW`: since which release?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from replaydrift import bisection, environments
from replaydrift.bisection import Bisection, Look, Step, candidates, stored_results
from replaydrift.changes import NEEDED
from replaydrift.commands import options
from replaydrift.errors import ReleaseError, RunError
from replaydrift.interpreters import Interpreters
from replaydrift.library import Case
from replaydrift.progress import progress
from replaydrift.releases import Release, read_table
from replaydrift.store import Store, checked_machine
from replaydrift.sweep import Wishes, sweep


@click.command()
@click.argument("name", metavar="CASE")
@click.option("--good", required=True, metavar="RELEASE", help="The release at one end.")
@click.option("--bad", required=True, metavar="RELEASE", help="The release at the other end.")
@click.option("--python", "pythons", multiple=True, type=options.Interpreter(), help="A release and the Python that has it.  [repeatable]")
@click.option("--no-install", is_flag=True, help="Leave out releases that are neither stored nor at hand, instead of installing them.")
@click.option("--skip", "skipped", multiple=True, metavar="RELEASE", help="Leave this release out.  [repeatable]")
@click.option("--nightly", "nightlies", multiple=True, metavar="RELEASE", help="Look at 2.16.0.dev20261101 as well.  [repeatable]")
@click.option("--index", metavar="URL", help="An index, or a folder of wheels, to install torch from.")
@click.option(
    "--environments", "folder", type=click.Path(path_type=Path, file_okay=False), default=environments.FOLDER, show_default=True,
    envvar="NOX_ENVDIR", help="Where environments of releases are, and are made.",
)  # fmt: skip
@options.cases_dir
@options.engine
@click.option("--attempts", type=click.IntRange(min=NEEDED), default=NEEDED, show_default=True, help="How often it runs on a release.")
@options.results
@options.machine
@options.limit
@click.option("--fresh", is_flag=True, help="Discard sweeps of these releases that were stopped.")
@options.as_json
def command(
    name: str,
    good: str,
    bad: str,
    pythons: tuple[tuple[str, str], ...],
    no_install: bool,
    skipped: tuple[str, ...],
    nightlies: tuple[str, ...],
    index: str | None,
    folder: Path,
    cases_dir: Path | None,
    engine: str,
    attempts: int,
    results: Path,
    machine: str | None,
    limit_s: float | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Find the first release on which the verdict of CASE changed from that of --good to that of --bad.

    Records of this version of the case are read from the store; other releases are run, and kept there. Their Python is
    the one given with --python, or an environment, which is made where there is none. Nightlies are looked at where they
    are named. Exit code 0: found. 1: the verdict changed more than once, every step found is listed. 2: cannot tell.
    """
    catalogue = options.catalogue_of(cases_dir)
    case = _case(name, catalogue.library.select((name,)))
    store, machine = Store(results), _machine(Store(results), machine, engine)
    skip = {Release.parse(release) for release in skipped}
    names = candidates(_known(good), _known(bad), read_table(), [*(release for release, _ in pythons), *map(_nightly, nightlies)])
    stored = stored_results(case, names, store, machine, catalogue)
    interpreters = Interpreters(
        dict(pythons), folder, index, needs_gpu=engine != "model", say=lambda line: click.echo(line, err=True),
    )  # fmt: skip
    left_out = {
        release
        for release in names
        if Release.parse(release) in skip or (no_install and release not in stored and interpreters.at_hand(release) is None)
    }
    with progress() as watcher:

        def run(release: str) -> bisection.Result:
            """The case on this release, kept in the store."""
            nonlocal machine
            watcher.doing(f"torch {release}")
            wishes = Wishes(
                python=interpreters.python_for(release), release=release, engine=engine, attempts=attempts, machine=machine,
                limit_s=limit_s, resume=not fresh, fresh=fresh,
            )  # fmt: skip
            swept = sweep(wishes, catalogue, [case], store, watcher)
            machine = swept.environment.machine  # From here on every release has to run there.
            if swept.stopped:
                raise RunError(f"stopped by {swept.stopped} after torch {release}; what was run is in the store: run the same command again")
            return swept.environment, swept.records[0]

        found = bisection.bisect(
            case, names, {key: value for key, value in stored.items() if key not in left_out}, run,
            lambda release: interpreters.at_hand(release) is not None, left_out,
        )  # fmt: skip
    click.echo(json.dumps(_tree(found), indent=1, ensure_ascii=False) if as_json else "\n".join(_lines(found)))
    sys.exit(found.exit_code)


def _case(name: str, chosen: tuple[Case, ...]) -> Case:
    if len(chosen) != 1:
        raise click.UsageError(f"{name!r} matches {len(chosen)} cases, expected one, such as 'rng/custom-unregistered'")
    return chosen[0]


def _known(text: str) -> str:
    return str(Release.parse(text))


def _nightly(text: str) -> str:
    release = Release.parse(text)
    if ".dev" not in release.version:
        raise ReleaseError(f"{text!r} is no nightly: expected a form such as '2.16.0.dev20261101'")
    return str(release)


def _machine(store: Store, name: str | None, engine: str) -> str | None:
    """The machine whose results count: the one named, the model's, the only one there is; None before the first run."""
    if name is not None or engine == "model":
        return checked_machine(name or "model")
    return store.machine(None) if store.machines() else None


def _lines(found: Bisection) -> Iterator[str]:
    """What a person reads: the answer, both sides of each step, then what was looked at."""
    yield f"{found.case} on {found.machine or 'no machine'}" + (f" (engine {found.engine})" if found.engine else "")
    yield _answer(found)
    if found.engine == "model":
        yield "These are verdicts of the CPU model of CUDA graphs, not of a GPU."
    for heading, steps in (("", found.steps), ("Lesser changes seen on the way", found.lesser)):
        if heading and steps:
            yield ""
            yield heading
        for step in steps:
            yield ""
            yield f"{step.change.change} on {step.after.release}"
            yield f"  {step.before.release}: {step.before.verdict}, {_said(step.before)}"
            yield f"  {step.after.release}: {step.after.verdict}, {_said(step.after)}"
            if _said(step.before) == _said(step.after):
                yield f"  {step.change.why}"
            yield from (f"  or on {look.release}: {look.why}" for look in step.between)
    yield ""
    width = max(len(look.release) for look in found.looks)
    for look in found.looks:
        yield f"{look.release:{width}}  " + (f"{look.verdict:14} {look.origin}" if look.record else look.why)
    yield f"{len(found.looked('store'))} read from the store, {len(found.looked('run'))} run"


def _answer(found: Bisection) -> str:
    """The whole answer in a sentence."""
    first, last = found.looks[0], found.looks[-1]
    what = "the verdict" if found.by == "verdict" else "what it shows"
    if found.exit_code == 1:
        on = ", ".join(step.after.release for step in found.steps)
        return f"Not monotone: {what} changed {len(found.steps)} times, on {on}."
    if found.exit_code == 0:
        step = found.steps[0]
        turn = f": {step.before.verdict} → {step.after.verdict}" if found.by == "verdict" else f": {step.change.change}"
        others = "".join(f", or on {look.release} ({look.why})" for look in step.between)
        return f"Found: {what} first changed on {step.after.release}{others}{turn}."
    for end in (first, last):
        if end.untold:
            return f"Cannot tell: {end.release} says nothing ({end.why})."
    if not found.steps:
        return f"Cannot tell: {first.release} and {last.release} show the same ({first.verdict})."
    step = found.steps[0]
    return f"Cannot tell exactly: {what} changed after {step.before.release} and not later than on {step.after.release}."


def _said(look: Look) -> str:
    """Outcome and values of one release."""
    if look.record is None:
        return look.why
    attempt = look.record.attempts[0]
    return f"wrong: {attempt.observed}" if attempt.outcome.kind == "wrong" else attempt.outcome.text


def _tree(found: Bisection) -> dict[str, object]:
    """What a program reads."""
    return {
        "case": found.case,
        "machine": found.machine,
        "engine": found.engine,
        "by": found.by,
        "exit_code": found.exit_code,
        "answer": _answer(found),
        "steps": [_step(step) for step in found.steps],
        "lesser": [_step(step) for step in found.lesser],
        "releases": [
            {"release": look.release, "verdict": look.verdict, "said": _said(look), "origin": look.origin, "why": look.why}
            for look in found.looks
        ],
    }


def _step(step: Step) -> dict[str, object]:
    return {
        "before": step.before.release,
        "after": step.after.release,
        "change": step.change.change,
        "why": step.change.why,
        "between": [look.release for look in step.between],
    }
