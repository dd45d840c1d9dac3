"""Values that were written over before they were read, and outputs that were read before they were there.

A memory cell remembers through which tensor's block each value was written. A read through another block that was written
before, and then written over through this one, has lost its value: the rule for graphs of one pool. For one graph's own
output the block is the same each time, so references are counted instead; `_reused` says what counts as evidence.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from typing import Any, Final

import torch

from replaydrift.model.findings import Finding, Findings
from replaydrift.model.observer_memory import Access, Allocation, Cell
from replaydrift.model.observer_records import Graph, Kept, Operation, Replay, line_of

_MOST_LOOKS: Final = 8  # looking through all containers takes some ten milliseconds
_COLLECTING: Final = frozenset(("aten::cat", "aten::stack"))


class Values:
    """Follows values from the write to the read."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def read(self, cell: Cell, access: Access) -> None:
        """Report a value that is lost, or was never there."""
        allocation = access.allocation
        if allocation is None:
            return
        lost = cell.lost.get(allocation)
        if lost is not None and (allocation.private or allocation.freed is None):
            self._lost(allocation, access, lost[1])
        graph: Graph | None = allocation.graph
        if graph is None or (access.replay is not None and access.replay.graph is graph):
            return
        if allocation.writes == 0 and not graph.active and allocation in graph.writers:
            self._too_early(allocation, access, graph)
        kept = graph.kept.get(allocation)
        if kept is not None and cell.write is not None and cell.write.replay is not None and cell.write.replay.graph is graph:
            kept.read = True
            kept.lines[access.operation.site] = kept.lines.get(access.operation.site, 0) + 1
            if kept.grown and graph.replays > kept.grown[0][0] and _reused(kept, graph, access):
                self._reuse(allocation, access, cell.write.replay)

    def write(self, cell: Cell, access: Access) -> None:
        """Remember whose value this write destroys."""
        before, allocation = cell.write, access.allocation
        if before is not None and before.allocation is not None and before.allocation is not allocation:
            if before.allocation.frozen or before.allocation.freed is None:
                cell.lost[before.allocation] = before, access
            if len(cell.lost) > 8:
                cell.lost = {owner: how for owner, how in cell.lost.items() if owner.frozen or owner.freed is None}
        if allocation is not None:
            if cell.lost:
                cell.lost.pop(allocation, None)
            allocation.writes += 1
            if not allocation.first_writer:
                allocation.first_writer = access.operation.name

    def replayed(self, graph: Graph) -> None:
        """Count the references to each output at the moment before it is written over."""
        for allocation, kept in list(graph.kept.items()):
            if allocation.freed is not None:
                del graph.kept[allocation]
                continue
            now = _references(allocation, kept)
            if kept.first < 0:
                kept.first = kept.high = now
            elif graph.replays and now > kept.high:
                kept.grown.append((graph.replays, kept.read))
            elif now < kept.high:
                del kept.grown[max(0, now - kept.first) :]
            kept.high = now
            kept.read = False
            kept.lines.clear()

    def _lost(self, allocation: Allocation, access: Access, over: Access) -> None:
        if over.replay is None or access.replay is over.replay:
            return
        if over.allocation is not None and not over.allocation.private and over.allocation.freed is not None:
            return  # A replay that writes freed memory: a finding of its own, which names the new owner.
        key = ("overwritten-by-graph", line_of(over), over.operation.site, allocation.site)
        if self._findings.seen(*key):
            return
        graph = over.replay.graph
        who = f"`{access.operation.short}`" + (f" of graph {access.replay.graph.number}" if access.replay else "")
        why = (
            f"This replay of graph {graph.number} writes, with `{over.operation.short}`, where another tensor of the pool still had a value "
            f"that {who} reads afterwards: the graphs of a pool share blocks as if they ran in the order of their captures."
        )
        fix = "Replay the graphs in the order of their captures, clone() the value before another graph is replayed, or give each its own pool."
        places = [
            ("value lost, allocated", allocation.site),
            (f"written over, recorded in graph {graph.number}", over.operation.site),
            ("read", line_of(access)),
        ]
        self._findings.add(key, Finding("overwritten-by-graph", line_of(over), why, fix, places))

    def _too_early(self, allocation: Allocation, access: Access, graph: Graph) -> None:
        key = ("read-before-replay", line_of(access), allocation.site)
        if self._findings.seen(*key):
            return
        reader = f"`{access.operation.short}`" + (f" of graph {access.replay.graph.number}" if access.replay else "")
        why = f"{reader} reads what graph {graph.number} is to compute, and it has not been replayed: a capture computes nothing."
        places = [("recorded", graph.writers[allocation].site), ("captured", graph.site)]
        self._findings.add(key, Finding("read-before-replay", line_of(access), why, "Call replay() after the capture, then read.", places))

    def _reuse(self, allocation: Allocation, access: Access, replay: Replay) -> None:
        key = ("output-reuse", replay.site, allocation.site)
        if self._findings.seen(*key):
            return
        why = (
            f"The output of graph {replay.graph.number} was kept after several replays, and is read after replay {replay.number}: each replay "
            "writes over the same buffer, so all that was kept shows the last values."
        )
        places = [("output allocated", allocation.site), ("read", access.operation.site)]
        fix = "Keep a copy: append(y.clone()), or y.item() where a number is wanted."
        self._findings.add(key, Finding("output-reuse", replay.site, why, fix, places))


def _reused(kept: Kept, graph: Graph, access: Access) -> bool:
    """Evidence that an output kept from earlier replays is what is read: one of four.

    References came after two replays whose values nobody read there; or after two replays, and one line reads the output
    again and again with no replay between; or the output is joined with itself; or one container holds it twice.
    """
    unread = sum(not read for _, read in kept.grown)
    if len(kept.grown) >= 2 and (unread >= 2 or kept.lines[access.operation.site] >= 2):
        return True
    if access.operation.name in _COLLECTING and sum(touch.allocation is access.allocation for touch in access.operation.touches) >= 2:
        return True
    if kept.looked == graph.replays or kept.looks >= _MOST_LOOKS:
        return False
    kept.looked, kept.looks = graph.replays, kept.looks + 1
    return _held_twice(kept.base())


def _held_twice(tensor: torch.Tensor | None) -> bool:
    if tensor is None:
        return False
    for holder in gc.get_referrers(tensor):
        if isinstance(holder, list | tuple | deque) and sum(item is tensor for item in holder) >= 2:
            return True
        if isinstance(holder, dict) and not _is_a_module(holder) and sum(item is tensor for item in holder.values()) >= 2:
            return True
    return False


def _is_a_module(names: dict[Any, Any]) -> bool:
    """True for the global names of a module: a second name for the output is no collection of outputs."""
    module = sys.modules.get(names.get("__name__", ""))
    return module is not None and vars(module) is names


def _references(allocation: Allocation, kept: Kept) -> int:
    """References to the tensor's object and to its storage, which views share; comparable with itself only."""
    tensor = kept.base()
    count = sys.getrefcount(tensor) if tensor is not None else 0
    return count + (int(torch._C._storage_Use_Count(allocation.storage)) if allocation.storage else 0)


def watch_outputs(graph: Graph, operation: Operation, writes: list[Any], allocation_of: Any) -> None:
    """Let the references to what a recorded operation writes in the pool be counted."""
    for tensor in writes:
        allocation = allocation_of(tensor)
        if allocation is not None and allocation.graph is graph:
            allocation.storage = tensor.untyped_storage()._cdata if hasattr(torch._C, "_storage_Use_Count") else 0
            graph.kept[allocation] = Kept(weakref.ref(tensor))
