"""Shadow memory: for each range of addresses who wrote it last, who has read it since, and whose values were lost there."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from replaydrift.model.observer_order import Thread
from replaydrift.model.observer_sites import Site

MOST_RUNS: Final = 256
Run = tuple[int, int]  # first address, address after the last


@dataclass(eq=False, slots=True)
class Allocation:
    """A block from the moment it was handed out: where in the script that was, and where it was given back."""

    address: int
    size: int
    stream: int
    site: Site
    pinned: bool = False
    withheld: bool = False  # pinned, and allocated in a capture: not handed out again once a copy was recorded
    private: bool = False  # in the pool of a graph
    graph: Any = None  # the capture it was made in
    storage: int = 0
    frozen: bool = False  # some recorded operation has its address
    freed: Site | None = None
    writes: int = 0
    first_writer: str = ""


@dataclass(eq=False, slots=True)
class Access:
    """One operation's read or write of one range, with its place in the order."""

    operation: Any
    thread: Thread
    tick: int
    allocation: Allocation | None
    replay: Any
    coarse: bool


@dataclass(eq=False, slots=True)
class Cell:
    """A range that has been accessed as one so far."""

    start: int
    end: int
    write: Access | None = None
    reads: dict[Thread, Access] = field(default_factory=dict)
    lost: dict[Allocation, tuple[Access, Access]] = field(default_factory=dict)  # whose value: who wrote it, who wrote over it

    def cut(self, at: int) -> Cell:
        """The part from that address on, as a cell of its own."""
        rest = Cell(at, self.end, self.write, dict(self.reads), dict(self.lost))
        self.end = at
        return rest


class Shadow:
    """The cells by address. They never overlap; a new access cuts them where it begins and ends."""

    def __init__(self) -> None:
        self._cells: dict[int, Cell] = {}
        self._starts: list[int] = []

    def over(self, start: int, end: int) -> list[Cell]:
        """Cells that make up exactly this range."""
        exact = self._cells.get(start)
        if exact is not None and exact.end == end:
            return [exact]
        self._cut(start)
        self._cut(end)
        found, at = [], start
        for first in self._starts[bisect_left(self._starts, start) : bisect_left(self._starts, end)]:
            if first > at:
                found.append(self._add(Cell(at, first)))
            found.append(self._cells[first])
            at = self._cells[first].end
        if at < end:
            found.append(self._add(Cell(at, end)))
        return found

    def forget(self, start: int, end: int, known: dict[Thread, int] | None = None) -> None:
        """Drop the accesses in the range: all, or those that are sure to be over for someone who knows so much."""
        self._cut(start)
        self._cut(end)
        for first in self._starts[bisect_left(self._starts, start) : bisect_left(self._starts, end)]:
            cell = self._cells[first]
            if cell.write is not None and _is_known(cell.write, known):
                cell.write = None
            cell.reads = {thread: access for thread, access in cell.reads.items() if not _is_known(access, known)}
            if known is None:
                cell.lost.clear()

    def _cut(self, at: int) -> None:
        index = bisect_right(self._starts, at) - 1
        if index >= 0:
            cell = self._cells[self._starts[index]]
            if cell.start < at < cell.end:
                self._add(cell.cut(at))

    def _add(self, cell: Cell) -> Cell:
        self._cells[cell.start] = cell
        insort(self._starts, cell.start)
        return cell


def _is_known(access: Access, known: dict[Thread, int] | None) -> bool:
    return known is None or known.get(access.thread, 0) >= access.tick


def runs_of(tensor: torch.Tensor) -> tuple[list[Run], bool]:
    """The ranges of addresses that the tensor's elements lie in, and whether they are coarse: too many gaps to name each."""
    try:
        start = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return [], False
    size = tensor.element_size()
    if not start or not tensor.numel():
        return [], False
    if tensor.is_contiguous():
        return [(start, start + tensor.numel() * size)], False
    length, outer = 1, []
    for stride, count in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if stride <= length:
            length += (count - 1) * stride
        else:
            outer.append((stride, count))
    total = 1
    for _, count in outer:
        total *= count
    if total > MOST_RUNS:
        last = length + sum((count - 1) * stride for stride, count in outer)
        return [(start, start + last * size)], True
    offsets = [sum(steps) for steps in itertools.product(*([stride * i for i in range(count)] for stride, count in outer))]
    return [(start + offset * size, start + (offset + length) * size) for offset in sorted(offsets)], False
