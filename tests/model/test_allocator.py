"""The caching allocator alone, rule by rule, then under random use. It needs no torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydrift.model.allocator import CachingAllocator, OutOfMemory
from replaydrift.model.blocks import DEFAULT_POOL, Block

START = 1 << 30
KIB, MIB = 1 << 10, 1 << 20
POOL = (0, 7)


def make(room: int = 1 << 33, on_segment_free: Callable[[int, int], None] = lambda _address, _size: None) -> CachingAllocator:
    """An allocator over so many bytes."""
    return CachingAllocator(START, START + room, on_segment_free)


def free_sizes(allocator: CachingAllocator) -> list[int]:
    """The sizes of all free blocks, ordered by address."""
    return [block.size for block in sorted(allocator.blocks(), key=lambda block: block.address)]


class TestSizes:
    """How large a block and its segment are."""

    @pytest.mark.parametrize(("requested", "size"), [(0, 512), (1, 512), (512, 512), (513, 1024), (4096, 4096), (5000, 5120)])
    def test_requests_are_rounded_up_to_512_bytes(self, requested: int, size: int) -> None:
        """A block is a multiple of 512 bytes and remembers what was asked for."""
        block = make().allocate(requested, stream=0)

        assert (size, requested) == (block.size, block.requested)

    @pytest.mark.parametrize(
        ("requested", "segment"),
        [(1, 2 * MIB), (MIB, 2 * MIB), (MIB + 1, 20 * MIB), (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB), (11 * MIB, 12 * MIB)],
    )
    def test_a_segment_is_2_mib_for_small_20_mib_for_large_and_a_multiple_of_2_mib_from_10_mib_on(
        self, requested: int, segment: int
    ) -> None:
        """The size of a new segment depends on the request alone."""
        allocator = make()
        allocator.allocate(requested, stream=0)

        assert [segment] == list(allocator.segments.values())

    def test_small_and_large_requests_never_share_a_segment(self) -> None:
        """A free large block is not cut up for a small request."""
        allocator = make()
        allocator.free(allocator.allocate(4 * MIB, stream=0))
        allocator.allocate(512, stream=0)

        assert {2 * MIB, 20 * MIB} == set(allocator.segments.values())


class TestEqualBlocks:
    """Which of several equal free blocks is taken."""

    @pytest.mark.parametrize("age_of", [None, "block", "segment"])
    def test_the_lowest_address_up_to_2_11_and_the_oldest_since(self, age_of: str | None) -> None:
        """Segments of one large request lie each below the one before, so the rules take different ones."""
        allocator = CachingAllocator(START, START + (1 << 33), age_of=age_of)
        older, younger = allocator.allocate(16 * MIB, stream=0), allocator.allocate(16 * MIB, stream=0)
        addresses = older.address, younger.address
        assert addresses[1] == addresses[0] - 16 * MIB
        allocator.free(older)
        allocator.free(younger)

        assert allocator.allocate(16 * MIB, stream=0).address == addresses[0 if age_of else 1]

    def test_within_a_segment_the_lowest_address_is_taken(self) -> None:
        """Its blocks are equally old since 2.13."""
        allocator = CachingAllocator(START, START + (1 << 33), age_of="segment")
        blocks = [allocator.allocate(512, stream=0) for _ in range(6)]
        for position in (3, 1):
            allocator.free(blocks[position])

        assert allocator.allocate(512, stream=0).address == START + 512

    @pytest.mark.parametrize(("age_of", "taken"), [("segment", 0), ("block", 2)])
    def test_on_2_12_a_block_that_was_split_off_again_is_young(self, age_of: str, taken: int) -> None:
        """The first two of four blocks are joined and split again: the front of them is younger than the third block, at a lower address."""
        allocator = CachingAllocator(START, START + (1 << 33), age_of=age_of)
        first, second, third, _fourth = (allocator.allocate(512, stream=0) for _ in range(4))
        allocator.free(first)
        allocator.free(second)
        front, _rest = allocator.allocate(512, stream=0), allocator.allocate(512, stream=0)
        allocator.free(third)
        allocator.free(front)

        assert allocator.allocate(512, stream=0).address == START + 512 * taken


class TestSplit:
    """When the rest of a block becomes a block of its own."""

    def test_a_small_block_is_split_when_512_bytes_are_left(self) -> None:
        """The rest of the segment stays free."""
        allocator = make()
        allocator.allocate(2 * KIB, stream=0)

        assert free_sizes(allocator) == [2 * MIB - 2 * KIB]

    def test_a_large_block_is_split_only_when_more_than_1_mib_is_left(self) -> None:
        """One mebibyte over is wasted, more is kept."""
        wasteful, thrifty = make(), make()
        whole = wasteful.allocate(11 * MIB, stream=0)
        cut = thrifty.allocate(18 * MIB + 512, stream=0)
        thrifty.free(cut)
        smaller = thrifty.allocate(2 * MIB, stream=0)

        assert (whole.size, free_sizes(wasteful)) == (12 * MIB, [])
        assert (smaller.size, free_sizes(thrifty)) == (2 * MIB, [18 * MIB])

    def test_split_blocks_lie_side_by_side(self) -> None:
        """The second block begins where the first ends: 0x200 further for the smallest."""
        allocator = make()
        first, second = allocator.allocate(4, stream=0), allocator.allocate(4, stream=0)

        assert second.address - first.address == 0x200


class TestReuse:
    """Which free block a request gets."""

    def test_a_freed_block_is_handed_out_again_for_the_same_size(self) -> None:
        """What a captured graph with a freed input trips over."""
        allocator = make()
        block, _guard = allocator.allocate(4, stream=0), allocator.allocate(4, stream=0)
        address = block.address
        allocator.free(block)

        assert address == allocator.allocate(4, stream=0).address

    def test_the_smallest_block_that_fits_wins(self) -> None:
        """Best fit: a hole of 1 KiB goes before one of 4 KiB, wherever they lie."""
        allocator = make()
        big, _one = allocator.allocate(4 * KIB, stream=0), allocator.allocate(512, stream=0)
        small, _two = allocator.allocate(1 * KIB, stream=0), allocator.allocate(512, stream=0)
        wanted = small.address
        allocator.free(big)
        allocator.free(small)

        assert wanted == allocator.allocate(600, stream=0).address

    def test_among_equal_blocks_the_lowest_address_wins(self) -> None:
        """The order in which they were freed does not matter."""
        allocator = make()
        blocks = [allocator.allocate(512, stream=0) for _ in range(6)]
        lowest = blocks[0].address
        for index in (4, 0, 2):
            allocator.free(blocks[index])

        assert lowest == allocator.allocate(512, stream=0).address

    def test_a_block_goes_back_to_the_stream_it_was_made_for(self) -> None:
        """Another stream takes memory of its own, even a whole new segment."""
        allocator = make()
        block = allocator.allocate(512, stream=0)
        address = block.address
        allocator.free(block)
        other = allocator.allocate(512, stream=1)

        assert address != other.address
        assert address == allocator.allocate(512, stream=0).address

    def test_a_private_pool_shares_nothing_with_the_default_pool(self) -> None:
        """A free block of either pool is never handed to the other."""
        allocator = make()
        allocator.hold(POOL)
        ours = allocator.allocate(512, stream=0)
        allocator.free(ours)
        theirs = allocator.allocate(512, stream=0, pool=POOL)
        allocator.free(theirs)

        assert allocator.allocate(512, stream=0, pool=POOL).pool.id == POOL
        assert allocator.allocate(512, stream=0).pool.id == DEFAULT_POOL
        assert len(allocator.segments) == 2


class TestCoalescing:
    """How free neighbours become one block."""

    def test_a_block_joins_the_free_neighbours_on_both_sides(self) -> None:
        """Three freed in any order leave one hole before the last block's end."""
        allocator = make()
        blocks = [allocator.allocate(512, stream=0) for _ in range(3)]
        guard = allocator.allocate(512, stream=0)
        for index in (0, 2, 1):
            allocator.free(blocks[index])

        assert free_sizes(allocator) == [3 * 512, 2 * MIB - 4 * 512]
        allocator.free(guard)
        assert free_sizes(allocator) == [2 * MIB]

    def test_an_allocated_block_between_keeps_two_holes_apart(self) -> None:
        """A hole of two times 512 bytes in pieces does not serve 1 KiB."""
        allocator = make()
        blocks = [allocator.allocate(512, stream=0) for _ in range(4)]
        allocator.free(blocks[0])
        allocator.free(blocks[2])

        assert allocator.allocate(1024, stream=0).address > blocks[3].address

    def test_a_block_is_freed_once(self) -> None:
        """Freeing twice is a fault of the caller, and says so."""
        allocator = make()
        block = allocator.allocate(512, stream=0)
        allocator.free(block)

        with pytest.raises(AssertionError, match="twice"):
            allocator.free(block)


class TestGivingBack:
    """When segments return to the device."""

    def test_empty_cache_gives_back_only_wholly_free_segments(self) -> None:
        """One live block keeps its segment."""
        given: list[tuple[int, int]] = []
        allocator = make(on_segment_free=lambda address, size: given.append((address, size)))
        _live, dead = allocator.allocate(512, stream=0), allocator.allocate(4 * MIB, stream=0)
        segment = dead.address
        allocator.free(dead)
        allocator.empty_cache()

        assert [(segment, 20 * MIB)] == given
        assert list(allocator.segments.values()) == [2 * MIB]

    def test_a_pool_in_use_keeps_its_segments(self) -> None:
        """A graph's memory stays while the graph lives, though all its blocks are free."""
        allocator = make()
        allocator.hold(POOL)
        allocator.free(allocator.allocate(512, stream=0, pool=POOL))
        allocator.empty_cache()

        assert len(allocator.segments) == 1

    def test_a_released_pool_goes_with_the_next_empty_cache(self) -> None:
        """Two graphs hold one pool: it goes when both are gone, and not before the cache is emptied."""
        allocator = make()
        allocator.hold(POOL)
        allocator.hold(POOL)
        allocator.free(allocator.allocate(512, stream=0, pool=POOL))
        allocator.release(POOL)
        allocator.empty_cache()
        held = len(allocator.segments)
        allocator.release(POOL)
        before = len(allocator.segments)
        allocator.empty_cache()

        assert (held, before, len(allocator.segments)) == (1, 1, 0)
        assert POOL not in allocator.pools

    def test_a_live_block_outlives_its_released_pool(self) -> None:
        """An output that is still held keeps its segment until it is freed and the cache emptied."""
        allocator = make()
        allocator.hold(POOL)
        output = allocator.allocate(512, stream=0, pool=POOL)
        allocator.release(POOL)
        allocator.empty_cache()
        kept = len(allocator.segments)
        allocator.free(output)
        allocator.empty_cache()

        assert (kept, len(allocator.segments)) == (1, 0)

    def test_a_full_device_empties_its_cache_before_it_gives_up(self) -> None:
        """A request that only fits once cached segments are given back is served; one that never fits raises."""
        allocator = make(room=24 * MIB)
        allocator.free(allocator.allocate(4 * MIB, stream=0))
        served = allocator.allocate(4 * MIB, stream=1)

        assert served.size == 4 * MIB
        with pytest.raises(OutOfMemory):
            allocator.allocate(30 * MIB, stream=0)

    def test_addresses_given_back_serve_a_larger_segment(self) -> None:
        """Adjacent ranges that were given back are one range again."""
        allocator = make(room=24 * MIB)
        blocks = [allocator.allocate(MIB, stream=0) for _ in range(24)]
        for block in blocks:
            allocator.free(block)
        allocator.empty_cache()

        assert allocator.allocate(24 * MIB, stream=0).address == START


class TestStatistics:
    """What memory_allocated and its like are computed from."""

    def test_allocated_counts_rounded_requested_counts_asked_and_reserved_counts_segments(self) -> None:
        """Ten bytes are 512 allocated and 2 MiB reserved; freed, only the segment and the peaks are left."""
        allocator = make()
        block = allocator.allocate(10, stream=0)
        counts = allocator.statistics.allocated, allocator.statistics.requested, allocator.statistics.reserved
        live = [count.current for count in counts]
        allocator.free(block)

        assert live == [512, 10, 2 * MIB]
        assert [count.current for count in counts] == [0, 0, 2 * MIB]
        assert [count.peak for count in counts] == [512, 10, 2 * MIB]

    def test_small_and_large_blocks_are_also_counted_apart(self) -> None:
        """Their sums are the whole."""
        allocator = make()
        allocator.allocate(512, stream=0)
        allocator.allocate(4 * MIB, stream=0)
        whole, small, large = allocator.statistics, allocator.statistics_of[True], allocator.statistics_of[False]

        assert (small.allocated.current, large.allocated.current, whole.allocated.current) == (512, 4 * MIB, 4 * MIB + 512)
        assert (small.reserved.current, large.reserved.current, whole.segments.current) == (2 * MIB, 20 * MIB, 2)


SIZES = st.one_of(st.integers(1, 5 * KIB), st.integers(512 * KIB, 3 * MIB), st.integers(9 * MIB, 25 * MIB))
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), SIZES, st.integers(0, 2), st.sampled_from([DEFAULT_POOL, (0, 1), (0, 2)])),
        st.tuples(st.just("free"), st.integers(0, 1 << 16)),
        st.tuples(st.just("empty_cache")),
    ),
    max_size=60,
)


def play(
    actions: list[tuple[Any, ...]], after_each: Callable[[CachingAllocator, list[Block]], None]
) -> tuple[CachingAllocator, list[Block]]:
    """The allocator and its live blocks after these actions; `after_each` looks at both in between."""
    allocator, live = make(), []
    for pool in ((0, 1), (0, 2)):
        allocator.hold(pool)
    for action, *arguments in actions:
        if action == "allocate":
            live.append(allocator.allocate(*arguments))
        elif action == "free" and live:
            allocator.free(live.pop(arguments[0] % len(live)))
        elif action == "empty_cache":
            allocator.empty_cache()
        after_each(allocator, live)
    return allocator, live


def every_block(allocator: CachingAllocator, live: list[Block]) -> list[Block]:
    """Live and free blocks, ordered by address."""
    return sorted([*live, *allocator.blocks()], key=lambda block: block.address)


class TestRandomUse:
    """What holds after any sequence of allocations, frees and emptied caches over streams and pools."""

    @settings(max_examples=150, deadline=None)
    @given(ACTIONS)
    def test_blocks_tile_their_segments_and_none_overlap(self, actions: list[tuple[Any, ...]]) -> None:
        """Live and free blocks together cover each segment once, without gap or overlap."""

        def check(allocator: CachingAllocator, live: list[Block]) -> None:
            blocks = iter(every_block(allocator, live))
            for start, size in sorted(allocator.segments.items()):
                at = start
                while at < start + size:
                    block = next(blocks)
                    assert at == block.address
                    assert block.size % 512 == 0
                    at += block.size
                assert start + size == at
            assert next(blocks, None) is None

        play(actions, check)

    @settings(max_examples=100, deadline=None)
    @given(ACTIONS)
    def test_no_two_free_blocks_are_neighbours(self, actions: list[tuple[Any, ...]]) -> None:
        """Free neighbours were joined."""

        def check(allocator: CachingAllocator, _live: list[Block]) -> None:
            for block in allocator.blocks():
                assert block.after is None or block.after.allocated
                assert block.before is None or block.before.allocated

        play(actions, check)

    @settings(max_examples=100, deadline=None)
    @given(ACTIONS)
    def test_statistics_add_up(self, actions: list[tuple[Any, ...]]) -> None:
        """The counts are the sums over what is there, and the peaks are never below them."""

        def check(allocator: CachingAllocator, live: list[Block]) -> None:
            statistics = allocator.statistics
            assert statistics.allocated.current == sum(block.size for block in live)
            assert statistics.requested.current == sum(block.requested for block in live)
            assert statistics.blocks.current == len(live)
            assert statistics.reserved.current == sum(allocator.segments.values())
            assert statistics.segments.current == len(allocator.segments)
            for count, *parts in zip(*(found.counts() for found in (statistics, *allocator.statistics_of.values())), strict=True):
                assert count.peak >= count.current == count.gained - count.lost
                assert count.current == sum(part.current for part in parts)

        play(actions, check)

    @settings(max_examples=100, deadline=None)
    @given(ACTIONS)
    def test_freeing_everything_leaves_one_block_a_segment(self, actions: list[tuple[Any, ...]]) -> None:
        """Then the pools can be released and everything is given back."""
        allocator, live = play(actions, lambda _allocator, _live: None)
        for block in live:
            allocator.free(block)

        assert sorted(allocator.segments) == [block.address for block in every_block(allocator, [])]
        assert all(block.whole_segment for block in allocator.blocks())
        for pool in ((0, 1), (0, 2)):
            allocator.release(pool)
        allocator.empty_cache()
        assert allocator.segments == {}
        assert allocator.statistics.reserved.current == 0

    @settings(max_examples=50, deadline=None)
    @given(ACTIONS)
    def test_the_same_actions_give_the_same_addresses(self, actions: list[tuple[Any, ...]]) -> None:
        """Nothing depends on anything but what was asked for."""
        first, second = (play(actions, lambda _allocator, _live: None) for _ in range(2))

        assert [block.address for block in first[1]] == [block.address for block in second[1]]


def test_the_allocator_does_not_need_torch() -> None:
    """It is imported in a process where importing torch fails."""
    code = "import sys; sys.modules['torch'] = None; import replaydrift.model.allocator"
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
