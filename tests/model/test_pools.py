"""Pools of a user's own: where allocations go when captures and uses of pools are nested, and who holds what."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

MIB = 1 << 20


def _pool_bytes(pool):
    return sum(segment["total_size"] for segment in torch.cuda.memory_snapshot(pool))


class TestRouting:
    """What was begun last counts."""

    def test_a_pool_used_inside_a_capture_goes_before_the_graphs(self):
        """A tensor made under `use_mem_pool` in a capture lies in that pool, and the next one in the graph's again."""
        pool, graph = torch.cuda.MemPool(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with torch.cuda.use_mem_pool(pool):
                inside = torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")
            outside = torch.zeros(12 * MIB, dtype=torch.uint8, device="cuda")

        assert _pool_bytes(pool.id) == inside.nbytes
        assert _pool_bytes(graph.pool()) == outside.nbytes

    def test_a_capture_inside_a_use_of_a_pool_has_its_own(self):
        """A capture begun under `use_mem_pool` allocates from the graph's pool."""
        pool, graph = torch.cuda.MemPool(), torch.cuda.CUDAGraph()
        with torch.cuda.use_mem_pool(pool):
            with torch.cuda.graph(graph):
                y = torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")

        assert _pool_bytes(graph.pool()) == y.nbytes
        assert _pool_bytes(pool.id) == 0


class TestHolding:
    """Who keeps a pool, and what happens when nobody does."""

    def test_a_pool_goes_with_its_object(self):
        """The segments of a pool are given back when its object goes, without `empty_cache`."""
        before, pool = torch.cuda.memory_reserved(), torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")
        during = torch.cuda.memory_reserved()
        del pool

        assert during - before == 16 * MIB
        assert torch.cuda.memory_reserved() == before

    def test_a_graph_holds_a_pool_used_in_its_capture_where_torch_does(self):
        """From 2.14 on, whose `use_mem_pool` tells the graph, the pool outlives its object for as long as the graph lives."""
        told = "_retain_pool" in inspect.getsource(torch.cuda.use_mem_pool)
        pool, graph, x = torch.cuda.MemPool(), torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
        with torch.cuda.graph(graph):
            with torch.cuda.use_mem_pool(pool):
                scratch = torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")
            _y = x + 1
        before = torch.cuda.memory_reserved()
        del scratch, pool
        assert before - torch.cuda.memory_reserved() == (0 if told else 16 * MIB)
        graph.reset()
        torch.cuda.empty_cache()
        assert before - torch.cuda.memory_reserved() >= 16 * MIB

    def test_a_pool_without_a_holder_cannot_be_taken_up_again(self):
        """While an output of the deleted graph lives, its pool is refused to another graph."""
        first, x = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
        with torch.cuda.graph(first):
            _y = x + 1
        pool = first.pool()
        first.reset()
        with pytest.raises(RuntimeError, match=r"use_count > 0 INTERNAL ASSERT FAILED at .*CUDACachingAllocator"):
            with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
                _z = x + 2

    def test_one_pool_is_recorded_to_once(self):
        """A use of a pool within a use of the same pool, or of a capture into it, is refused."""
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            with pytest.raises(RuntimeError, match="already recording to mempool_id"):
                with torch.cuda.use_mem_pool(pool):
                    pass

    def test_what_is_no_pool_id_is_refused(self):
        """`capture_begin` takes a pair of numbers."""
        with pytest.raises(TypeError, match="incompatible function arguments"):
            with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=7):
                pass


def test_a_block_that_waits_for_another_stream_stands_in_the_snapshot():
    """Freed after `record_stream` in a capture, a block is pending: its segment is the pool's still."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        x = torch.zeros(16 * MIB, dtype=torch.uint8, device="cuda")
        x.record_stream(side)
        del x
        torch.cuda.current_stream().wait_stream(side)
    (segment,) = torch.cuda.memory_snapshot(graph.pool())

    assert segment["total_size"] == 16 * MIB
    assert [block["state"] for block in segment["blocks"]] == ["active_pending_free"]
