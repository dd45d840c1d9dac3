"""What a capture records: nodes, and for each stream that takes part the nodes that its next one must follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replaydrift.model.blocks import Block, PoolId

Work = Callable[[], None]


@dataclass(eq=False)
class Node:
    """One recorded piece of work: what runs, how long it is assumed to take, which nodes must end before."""

    work: Work
    microseconds: float
    after: tuple[int, ...]
    name: str
    at_end: bool = False
    stamps: Any = None  # an event that was recorded here: it gets its time at each replay
    awaits: Any = None  # an external event: the node starts when it has come, as last recorded before the replay
    operation: Any = None


@dataclass(eq=False)
class Capture:
    """A capture under way: its nodes, and for each stream that takes part the nodes that its next one must follow."""

    number: int
    pool: PoolId
    origin: int
    mode: str
    nodes: list[Node] = field(default_factory=list)
    tails: dict[int, frozenset[int]] = field(default_factory=dict)
    invalid: bool = False
    generators: dict[Any, int] = field(default_factory=dict)
    random_bases: dict[Any, list[int]] = field(default_factory=dict)
    graph_id: int = 0
    state_blocks: list[Block] = field(default_factory=list)  # of the generators that it uses, where this release makes them per capture
    thread: int = field(default_factory=threading.get_ident)
    bodies: list[Any] = field(default_factory=list)  # of conditional nodes under way, the innermost last
    graph: Any = None  # a weak reference to the graph that is captured
    pools_before: int = 0  # how many uses of pools the thread had entered when the capture began: only later ones go before its own

    def add(self, stream: int, node: Node) -> None:
        """Append a node to the stream's part of the graph."""
        node.after = tuple(self.tails[stream])
        self.tails[stream] = frozenset((len(self.nodes),))
        self.nodes.append(node)
