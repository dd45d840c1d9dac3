"""`replaydrift model rules`: what the CPU model knows only because somebody wrote it down."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.commands import options
from replaydrift.model.rules import RULES, Rule

_OPEN_END = "9.9"


@click.group()
def command() -> None:
    """The CPU model of CUDA graphs. To run a script of yours on it: python -m replaydrift.model script.py"""


@command.command("rules")
@options.as_json
def rules(as_json: bool) -> None:
    """Print the written rules: what each says, the releases it holds for, and where it was seen.

    A verdict that used one is no evidence for that fact, and is marked in every table. Rules marked as mechanism say only
    where memory lies; their use is not marked.
    """
    if as_json:
        click.echo(json.dumps([_tree(rule) for rule in RULES], indent=1, ensure_ascii=False))
        return
    table = Table("rule", "releases", "says", "seen", box=None, header_style="bold", pad_edge=False)
    for rule in RULES:
        key = f"{rule.key} (mechanism)" if rule.mechanism else rule.key
        table.add_row(Text(key), Text(_releases(rule)), Text(rule.value or "–"), Text(rule.source))
    console = Console(highlight=False)
    Console(width=None if console.is_terminal else 200, highlight=False).print(table)


def _releases(rule: Rule) -> str:
    return f"from {rule.first}" if rule.last == _OPEN_END else f"{rule.first} to {rule.last}"


def _tree(rule: Rule) -> dict[str, object]:
    return {
        "key": rule.key,
        "first": rule.first,
        "last": None if rule.last == _OPEN_END else rule.last,
        "value": rule.value,
        "source": rule.source,
        "mechanism": rule.mechanism,
    }
