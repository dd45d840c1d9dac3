"""`replaydrift model rules`, which needs no torch."""

from __future__ import annotations

import json

from click.testing import CliRunner

from replaydrift.cli import cli
from replaydrift.model.rules import RULES


def test_every_rule_is_printed_with_its_source() -> None:
    """A person sees each written rule, the releases it holds for and where it was seen."""
    text = " ".join(CliRunner().invoke(cli, ["model", "rules"]).output.split())
    for rule in RULES:
        assert rule.key in text
    assert "2.12 to 2.13" in text
    assert "pull request 176753" in text


def test_rules_as_json() -> None:
    """A program gets the same table; a rule without an end has none."""
    tree = json.loads(CliRunner().invoke(cli, ["model", "rules", "--json"]).output)
    assert [row["key"] for row in tree] == [rule.key for rule in RULES]
    assert all(row["source"] for row in tree)
    refused = [row for row in tree if row["key"] == "unregistered-generator-refused"]
    assert [(row["first"], row["last"]) for row in refused] == [("2.11", "2.11"), ("2.12", "2.13")]
    assert next(row for row in tree if row["key"] == "pageable-refused")["last"] is None
