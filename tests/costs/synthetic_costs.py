"""Synthetic costs for tests: made up, never measured, and nothing of them may leave the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from making import environment

from replaydrift.costs.records import Block, Costs, Purpose, Subject, Visit
from replaydrift.records import Environment

OLD, NEW = "2.13.0+cu130", "2.15.0+cu132"


def block(*order: str, name: str = "20261201-0900-upgrade", purpose: Purpose = "upgrade") -> Block:
    """A block of these visits; A B B A A B B A of two releases where none are given."""
    return Block(name, purpose, order or (OLD, NEW, NEW, OLD) * 3)


def subject(version: str = "v1", failed: str = "", lacks: Mapping[str, str] | None = None, **metrics: float | Sequence[float]) -> Subject:
    """A subject with these samples; a number alone is a list of one."""
    samples = {name: (value,) if isinstance(value, int | float) else tuple(value) for name, value in metrics.items()}
    return Subject(version, samples, lacks or {}, failed)


def visit(number: int, discarded: str = "", **subjects: Subject) -> Visit:
    """A visit with these subjects; `chain_1000` stands for `chain/1000`."""
    named = {name.replace("__", "/").replace("_", "/", 1): one for name, one in subjects.items()}
    return Visit(number, "2026-12-01T09:00:00+00:00", 31.5, named, 1980, 45, (), discarded)


def costs(release: str = OLD, *visits: Visit, of: Block | None = None, where: Environment | None = None) -> Costs:
    """The costs of one release in a block."""
    return Costs(of or block(), where or environment(release), visits)
