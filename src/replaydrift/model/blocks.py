"""What the caching allocator keeps: blocks, the free lists of pools, and counts of what is in use. Pure bookkeeping, no memory and no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

DEFAULT_POOL: Final = (0, 0)

PoolId = tuple[int, int]
Key = tuple[int, int, int, int]


@dataclass(eq=False)
class Block:
    """A piece of a segment: allocated, or on a free list. `requested` is what was asked for before rounding."""

    address: int
    size: int
    stream: int
    pool: Pool
    small: bool
    age: int = 0  # its number or its segment's, where that decides between equal blocks
    requested: int = 0
    allocated: bool = False
    before: Block | None = None
    after: Block | None = None
    # Other streams that use the block (`record_stream`), each with the time until which they do.
    uses: dict[int, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What a free list is ordered by."""
        return self.stream, self.size, self.age, self.address

    @property
    def whole_segment(self) -> bool:
        """True where the block is all of its segment."""
        return self.before is None and self.after is None


@dataclass(eq=False)
class Pool:
    """The free lists of one pool; `users` counts the graphs that hold it, 1 for ever for the default pool."""

    id: PoolId
    users: int = 1
    live: int = 0
    kept: bool = False  # the graph of a lost capture is gone and, on old releases, still holds it
    under_way: bool = False  # a capture into the pool was lost and, on old releases, never counted as ended
    free: dict[bool, list[tuple[Key, Block]]] = field(default_factory=lambda: {True: [], False: []})


class Count:
    """One number that is kept over time: what it is now, its peak, and all that was ever added and taken away."""

    __slots__ = ("current", "gained", "lost", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.gained = self.lost = 0

    def add(self, amount: int) -> None:
        """Add to the count, and to its peak where it rises above it."""
        self.current += amount
        self.gained += amount
        self.peak = max(self.peak, self.current)

    def take(self, amount: int) -> None:
        """Take from the count."""
        self.current -= amount
        self.lost += amount


@dataclass
class Statistics:
    """Bytes of blocks after rounding and before it, bytes in segments, and how many blocks and segments there are."""

    allocated: Count = field(default_factory=Count)
    requested: Count = field(default_factory=Count)
    reserved: Count = field(default_factory=Count)
    blocks: Count = field(default_factory=Count)
    segments: Count = field(default_factory=Count)

    def counts(self) -> tuple[Count, ...]:
        """All of them."""
        return self.allocated, self.requested, self.reserved, self.blocks, self.segments
