"""`replaydrift accept OLD NEW`: draft the entries that explain what changed; a person gives the why."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import tomlkit
from tomlkit.items import AoT

from replaydrift import releases
from replaydrift.check import Finding, check
from replaydrift.commands import options
from replaydrift.explanations import FILE, ExplanationError, read_explanations, state
from replaydrift.store import Store, write_whole


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="CASE",
    help="Only this case; may be repeated.  [default: all unexplained]",
)
@options.results
@options.machine
@click.option("--why", help="The reason, for all entries of this call. Asked for at a terminal where it is left out.")
@click.option("--link", default="", help="The commit, pull request or release note that says so.")
@click.option("--any-machine", is_flag=True, help="Let the entry speak of every machine, not only of this one.")
@click.option("--explanations", type=click.Path(path_type=Path, dir_okay=False), default=FILE, show_default=True)
def command(
    old: str, new: str, cases: tuple[str, ...], results: Path, machine: str | None, why: str | None, link: str, any_machine: bool,
    explanations: Path,
) -> None:  # fmt: skip
    """Add an entry to explanations.toml for each unexplained change from OLD to NEW, with the reason that you give.

    Take neighbouring releases: an entry then names the step at which the change happened, and covers every wider check.
    """
    store = Store(results)
    machine = store.machine(machine)
    stored = store.releases(machine)
    entries = read_explanations(explanations)
    found = check(store, machine, releases.resolve(old, stored), releases.resolve(new, stored), (), entries)
    wanted = [finding for finding in found.unexplained if not cases or finding.change.case in cases]
    strange = sorted(set(cases) - {finding.change.case for finding in wanted})
    if strange:
        raise ExplanationError(
            f"no unexplained change of {', '.join(strange)} from {found.old} to {found.new} on {machine!r}: "
            f"unexplained are {', '.join(sorted(finding.change.case for finding in found.unexplained)) or 'none'}",
        )
    if not wanted:
        click.echo(f"Nothing to explain from {found.old} to {found.new} on {machine}.")
        return
    document = tomlkit.parse(explanations.read_text(encoding="utf-8")) if explanations.is_file() else tomlkit.document()
    table = document.setdefault("change", tomlkit.aot())
    assert isinstance(table, AoT)
    for finding in wanted:
        click.echo(f"{finding.change.case}: {finding.change.change}: {finding.change.why}")
        table.append(_entry(finding, "*" if any_machine else machine, found.old, found.new, why or _asked(), link))
    write_whole(explanations, tomlkit.dumps(document))
    click.echo(f"{len(wanted)} entries added to {explanations}.")


def _name(release: str) -> str:
    """The release as an entry names it: without a build where it is a default wheel, so that it speaks of other machines' too."""
    return releases.Release.parse(release).version if releases.wheel(release) == "default" else release


def _asked() -> str:
    """What a person answers; an error where nobody is there to ask."""
    if not sys.stdin.isatty():
        raise ExplanationError("no reason given and no terminal to ask at: say it with --why 'what in torch changed'")
    answer: str = click.prompt("  why (a sentence: what in torch changed, or 'open: …')")
    return answer


def _entry(finding: Finding, machine: str, old: str, new: str, why: str, link: str) -> tomlkit.items.Table:
    entry = tomlkit.table()
    values = {
        "case": finding.change.case,
        "machine": machine,
        "from": _name(old),
        "to": _name(new),
        "change": finding.change.change,
        "before": state(finding.change, "before"),
        "after": state(finding.change, "after"),
        "why": why.strip(),
    }
    for key, value in values.items():
        entry.add(key, value)
    if link:
        entry.add("link", link)
    entry.add(tomlkit.nl())
    return entry
