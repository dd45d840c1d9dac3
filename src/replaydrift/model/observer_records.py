"""What the observer keeps of operations, graphs and replays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from replaydrift.model.observer_memory import Access, Allocation, Run, runs_of
from replaydrift.model.observer_sites import Site


@dataclass(eq=False, slots=True)
class Touch:
    """One tensor of an operation: the ranges that it lies in, and what is done to them."""

    runs: list[Run]
    coarse: bool
    allocation: Allocation | None
    reads: bool
    writes: bool


@dataclass(eq=False, slots=True)
class Operation:
    """A kernel or a copy, and the line that asked for it."""

    name: str
    site: Site
    touches: list[Touch]

    @property
    def short(self) -> str:
        """The operator's name as one says it."""
        return self.name.split("::")[-1]


@dataclass(eq=False, slots=True)
class Kept:
    """An output of a graph: how many references to it there were at each replay, and whether its values were read."""

    base: weakref.ref[torch.Tensor]
    high: int = -1
    first: int = -1
    grown: list[tuple[int, bool]] = field(default_factory=list)  # replay after which references came, whether it was read there
    read: bool = False
    lines: dict[Site, int] = field(default_factory=dict)  # reads since the last replay, by line
    looked: int = 0  # at which replay containers were looked through
    looks: int = 0


@dataclass(eq=False)
class Graph:
    """A capture and what became of it."""

    number: int
    site: Site
    active: bool = True
    replays: int = 0
    lanes: list[int] | None = None
    writers: dict[Allocation, Operation] = field(default_factory=dict)  # the first recorded operation that writes each
    outside: dict[Allocation, tuple[Operation, bool, bool]] = field(default_factory=dict)  # first user, is read, is written
    kept: dict[Allocation, Kept] = field(default_factory=dict)
    unrecorded: dict[Allocation, Operation] = field(default_factory=dict)

    def froze(self, operation: Operation) -> None:
        """Note a recorded operation."""
        for touch in operation.touches:
            found = touch.allocation
            if found is None:
                continue
            found.frozen = True
            if touch.writes:
                self.writers.setdefault(found, operation)
            if not found.private:
                first, reads, writes = self.outside.get(found, (operation, False, False))
                self.outside[found] = first, reads or touch.reads, writes or touch.writes


@dataclass(eq=False, slots=True)
class Replay:
    """One replay: of which graph, on which stream, from which line."""

    graph: Graph
    number: int
    stream: int
    site: Site


def line_of(access: Access) -> Site:
    """The line that set an access going: that of the replay, for a node of a graph."""
    site: Site = access.operation.site if access.replay is None else access.replay.site
    return site


def lanes_of(nodes: Iterable[Any]) -> list[int]:
    """For each node the branch it continues: nodes of one branch follow one another."""
    lanes: list[int] = []
    count = 0
    last: dict[int, int] = {}  # last node of a branch: the branch
    for index, node in enumerate(nodes):
        lane = next((last.pop(before) for before in node.after if before in last), None)
        if lane is None:
            lane, count = count, count + 1
        lanes.append(lane)
        last[index] = lane
    return lanes


def touches_of(reads: list[torch.Tensor], writes: list[torch.Tensor], name: str, allocation_of: Any) -> list[Touch]:
    """The operation's tensors, each once."""
    written = {id(tensor) for tensor in writes}
    found: dict[int, Touch] = {}
    for tensor in (*reads, *writes):
        known = found.get(id(tensor))
        if known is None:
            runs, coarse = runs_of(tensor)
            known = found[id(tensor)] = Touch(runs, coarse, allocation_of(tensor), reads=False, writes=False)
        known.writes = id(tensor) in written
    for tensor in reads:
        found[id(tensor)].reads = id(tensor) not in written or name not in ONLY_WRITE
    return list(found.values())


# Operators that write their first argument whatever it held.
ONLY_WRITE = frozenset(
    f"aten::{name}_"
    for name in ("fill", "zero", "copy", "normal", "uniform", "random", "bernoulli", "exponential", "cauchy", "geometric", "log_normal")
)
