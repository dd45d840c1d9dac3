"""PyTorch's caching allocator over a range of addresses: pure bookkeeping, no memory and no torch.

The rules are those of `c10/cuda/CUDACachingAllocator.cpp`: sizes rounded to 512 bytes; a small pool (requests up to 1 MiB,
from segments of 2 MiB) and a large one (segments of 20 MiB, or a multiple of 2 MiB for requests from 10 MiB on); best fit
among the free blocks of the same stream; a block split when enough would be left over; free neighbours joined. Each private pool has
free lists of its own. Of equal free blocks the one at the lowest address is taken, or the one made first where `age_of` is "block":
the front of a split is made anew, and the rest stays what it was. Where it is "segment", the one whose segment was obtained first, then
the one at the lowest address.

Where segments lie is the driver's choice. As an H200's does, small ones follow one another upwards, and each for one large request lies
below the one before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Final

from replaydrift.model.blocks import DEFAULT_POOL, Block, Pool, PoolId, Statistics

MIN_BLOCK: Final = 512
SMALL_REQUEST: Final = 1 << 20
SMALL_SEGMENT: Final = 2 << 20
LARGE_SEGMENT: Final = 20 << 20
BIG_REQUEST: Final = 10 << 20
ROUND_LARGE: Final = 2 << 20


class OutOfMemory(Exception):  # noqa: N818 - the field's word
    """The range of addresses has no room for the request, even after all cached segments were given back."""


class NobodyHolds(Exception):  # noqa: N818 - what the allocator finds
    """The pool still has blocks in use, and no graph or other holder any more: it cannot be taken up again."""


class CachingAllocator:
    """Hands out blocks of the addresses from `start` to `end`; `on_segment_free` is told which range was given back,
    and `before_segment` for which stream one is wanted: it may refuse by raising.
    """

    def __init__(
        self,
        start: int,
        end: int,
        on_segment_free: Callable[[int, int], None] = lambda _address, _size: None,
        before_segment: Callable[[int], None] = lambda _stream: None,
        *,
        age_of: str | None = None,
    ) -> None:
        self.start, self.end = start, end
        self.pools: dict[PoolId, Pool] = {DEFAULT_POOL: Pool(DEFAULT_POOL)}
        self.segments: dict[int, int] = {}  # address: size
        self.statistics = Statistics()
        self.statistics_of = {True: Statistics(), False: Statistics()}  # of the small blocks, of the large ones
        self._holes: list[tuple[int, int]] = [(start, end - start)]  # address, size: ordered, never adjacent
        self._on_segment_free = on_segment_free
        self._before_segment = before_segment
        self._age_of = age_of
        self._made = 0

    def allocate(self, requested: int, stream: int, pool: PoolId = DEFAULT_POOL) -> Block:
        """A block of at least `requested` bytes for work on `stream`; OutOfMemory where there is no room."""
        size = max(MIN_BLOCK, -(-requested // MIN_BLOCK) * MIN_BLOCK)
        small = size <= SMALL_REQUEST
        home = self.pools[pool]
        block = self._best_fit(home, small, stream, size) or self._new_segment(home, small, stream, size)
        left = block.size - size
        if left >= MIN_BLOCK if small else left > SMALL_REQUEST:
            rest = Block(block.address + size, left, stream, home, small, block.age, before=block, after=block.after)
            if rest.after:
                rest.after.before = rest
            block.after, block.size = rest, size
            block.age = self._age("block", block.age)
            insort(home.free[small], (rest.key, rest), key=lambda entry: entry[0])
        block.allocated, block.requested = True, requested
        home.live += 1
        for statistics in (self.statistics, self.statistics_of[small]):
            statistics.allocated.add(block.size)
            statistics.requested.add(requested)
            statistics.blocks.add(1)
        return block

    def free(self, block: Block) -> None:
        """Put the block on its pool's free list, joined with free neighbours."""
        assert block.allocated, "freed twice"
        for statistics in (self.statistics, self.statistics_of[block.small]):
            statistics.allocated.take(block.size)
            statistics.requested.take(block.requested)
            statistics.blocks.take(1)
        block.allocated, block.requested = False, 0
        block.pool.live -= 1
        block.uses.clear()
        for neighbour in (block.before, block.after):
            if neighbour is not None and not neighbour.allocated and neighbour.pool is block.pool:
                self._take(neighbour)
                first, second = (neighbour, block) if neighbour is block.before else (block, neighbour)
                block.address, block.size = first.address, first.size + second.size
                block.before, block.after = first.before, second.after
                if block.before:
                    block.before.after = block
                if block.after:
                    block.after.before = block
        insort(block.pool.free[block.small], (block.key, block), key=lambda entry: entry[0])

    def empty_cache(self, only: PoolId | None = None) -> None:
        """Give back every segment that is wholly free, of the default pool and of pools that no graph holds any more, or of one of these."""
        for pool in list(self.pools.values()):
            if (pool.id != DEFAULT_POOL and pool.users) or only not in (None, pool.id):
                continue
            for small in (True, False):
                for _, block in [entry for entry in pool.free[small] if entry[1].whole_segment]:
                    self._take(block)
                    self._give_back(block)
            if pool.id != DEFAULT_POOL and not any(pool.free.values()) and not pool.live:
                del self.pools[pool.id]

    def hold(self, pool: PoolId) -> None:
        """Count one more graph that holds the pool; the pool is made where there is none, and lost where its last holder has gone."""
        if pool in self.pools:
            if not self.pools[pool].users:
                raise NobodyHolds(pool)
            self.pools[pool].users += 1
        else:
            self.pools[pool] = Pool(pool)

    def release(self, pool: PoolId) -> None:
        """Count one graph less. A pool without graphs keeps its blocks until the cache is emptied."""
        self.pools[pool].users -= 1
        assert self.pools[pool].users >= 0, "released more often than held"

    def blocks(self) -> Iterable[Block]:
        """Every free block, for a snapshot."""
        return (block for pool in self.pools.values() for entries in pool.free.values() for _, block in entries)

    def _best_fit(self, pool: Pool, small: bool, stream: int, size: int) -> Block | None:
        entries = pool.free[small]
        at = bisect_left(entries, (stream, size, -1, -1), key=lambda entry: entry[0])
        if at == len(entries) or entries[at][1].stream != stream:
            return None
        return entries.pop(at)[1]

    def _take(self, block: Block) -> None:
        entries = block.pool.free[block.small]
        at = bisect_left(entries, block.key, key=lambda entry: entry[0])
        assert entries[at][1] is block
        del entries[at]

    def _new_segment(self, pool: Pool, small: bool, stream: int, size: int) -> Block:
        self._before_segment(stream)
        if small:
            length = SMALL_SEGMENT
        elif size < BIG_REQUEST:
            length = LARGE_SEGMENT
        else:
            length = -(-size // ROUND_LARGE) * ROUND_LARGE
        large = size >= BIG_REQUEST
        address = self._hole(length, from_above=large)
        if address is None:
            self.empty_cache()
            address = self._hole(length, from_above=large)
        if address is None:
            raise OutOfMemory(size)
        self.segments[address] = length
        for statistics in (self.statistics, self.statistics_of[small]):
            statistics.reserved.add(length)
            statistics.segments.add(1)
        return Block(address, length, stream, pool, small, self._age("block", self._age("segment", 0)))

    def _age(self, of: str, inherited: int) -> int:
        """The number of a new block or segment where blocks are ordered by those, else the one that it inherits."""
        if of != self._age_of:
            return inherited
        self._made += 1
        return self._made

    def _hole(self, length: int, *, from_above: bool) -> int | None:
        for position in sorted(range(len(self._holes)), reverse=from_above):
            address, size = self._holes[position]
            if size >= length:
                if size == length:
                    del self._holes[position]
                else:
                    self._holes[position] = (address, size - length) if from_above else (address + length, size - length)
                return address + size - length if from_above else address
        return None

    def _give_back(self, block: Block) -> None:
        address, size = block.address, block.size
        del self.segments[address]
        for statistics in (self.statistics, self.statistics_of[block.small]):
            statistics.reserved.take(size)
            statistics.segments.take(1)
        insort(self._holes, (address, size))
        joined: list[tuple[int, int]] = []
        for start, length in self._holes:
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        self._holes = joined
        self._on_segment_free(address, size)
