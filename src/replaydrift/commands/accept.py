"""`replaydrift accept OLD NEW`: draft the entries that explain what changed; a person gives the why."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click
import tomlkit
from tomlkit.items import AoT

from replaydrift import releases, stored_releases
from replaydrift.check import Check, check
from replaydrift.commands import options
from replaydrift.costs import explained
from replaydrift.costs.cost_store import CostStore
from replaydrift.explanations import FILE, ExplanationError, read_explanations, state
from replaydrift.files import write_whole
from replaydrift.report.cost_words import said
from replaydrift.store import Store


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
    found = check(store, machine, stored_releases.resolve(old, stored), stored_releases.resolve(new, stored), (), entries, costs=CostStore(results))
    unexplained = _unexplained(found)
    wanted = [news for news in unexplained if not cases or news.case in cases]
    strange = sorted(set(cases) - {news.case for news in wanted})
    if strange:
        raise ExplanationError(
            f"no unexplained change of {', '.join(strange)} from {found.old} to {found.new} on {machine!r}: "
            f"unexplained are {', '.join(sorted({news.case for news in unexplained})) or 'none'}",
        )
    if not wanted:
        click.echo(f"Nothing to explain from {found.old} to {found.new} on {machine}.")
        return
    document = tomlkit.parse(explanations.read_text(encoding="utf-8")) if explanations.is_file() else tomlkit.document()
    table = document.setdefault("change", tomlkit.aot())
    assert isinstance(table, AoT)
    for news in wanted:
        click.echo(f"{news.case}: {news.change}: {news.why}")
        table.append(_entry(news, "*" if any_machine else machine, found.old, found.new, why or _asked(), link))
    write_whole(explanations, tomlkit.dumps(document))
    click.echo(f"{len(wanted)} entries added to {explanations}.")


@dataclass(frozen=True, slots=True)
class _News:
    """An unexplained change as an entry keeps it, and the sentence with what was seen."""

    case: str
    change: str
    before: str
    after: str
    why: str


def _unexplained(found: Check) -> list[_News]:
    """All that a person has to explain: changes of cases, then of costs."""
    changes = [finding.change for finding in found.unexplained]
    news = [_News(change.case, change.change, state(change, "before"), state(change, "after"), change.why) for change in changes]
    for cost in found.unexplained_costs:
        assert found.costs is not None
        before, after = explained.sides(cost)
        news.append(_News(cost.subject, explained.CHANGE, before, after, f"{cost.metric} {said(cost, found.costs)}"))
    return news


def _name(release: str) -> str:
    """The release as an entry names it: without a build where it is a default wheel, so that it speaks of other machines' too."""
    return releases.Release.parse(release).version if stored_releases.wheel(release) == "default" else release


def _asked() -> str:
    """What a person answers; an error where nobody is there to ask."""
    if not sys.stdin.isatty():
        raise ExplanationError("no reason given and no terminal to ask at: say it with --why 'what in torch changed'")
    answer: str = click.prompt("  why (a sentence: what in torch changed, or 'open: …')")
    return answer


def _entry(news: _News, machine: str, old: str, new: str, why: str, link: str) -> tomlkit.items.Table:
    entry = tomlkit.table()
    values = {
        "case": news.case,
        "machine": machine,
        "from": _name(old),
        "to": _name(new),
        "change": news.change,
        "before": news.before,
        "after": news.after,
        "why": why.strip(),
    }
    for key, value in values.items():
        entry.add(key, value)
    if link:
        entry.add("link", link)
    # Empty lines to fill: an upgrade guide prints them, and does without.
    entry.add("title", "")
    entry.add("advice", "")
    entry.add(tomlkit.nl())
    return entry
