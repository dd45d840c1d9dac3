"""The device's memory as a program sees it: counts, pools of graphs, blocks shared between streams."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

SLEEP = 100_000_000
MIB = 1 << 20


class TestCounts:
    """memory_allocated and its like."""

    def test_allocated_memory_is_counted_in_blocks(self):
        """A tensor of ten bytes is 512 bytes; gone, it is nothing, and its segment stays reserved."""
        before = torch.cuda.memory_allocated()
        x = torch.empty(10, dtype=torch.uint8, device="cuda")
        during = torch.cuda.memory_allocated()
        del x

        assert during - before == 512
        assert torch.cuda.memory_allocated() == before
        assert torch.cuda.memory_reserved() == 2 * MIB

    def test_peaks_are_kept_until_they_are_reset(self):
        """`max_memory_allocated` remembers what is gone."""
        x = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
        del x
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()

        assert peak == 8 * MIB
        assert torch.cuda.max_memory_allocated() == 0
        assert torch.cuda.max_memory_reserved() == 20 * MIB

    def test_empty_cache_gives_free_segments_back(self):
        """`memory_reserved` falls to what live blocks hold, and mem_get_info rises."""
        x = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
        free, total = torch.cuda.mem_get_info()
        del x
        torch.cuda.empty_cache()

        assert torch.cuda.memory_reserved() == 0
        assert torch.cuda.mem_get_info() == (free + 20 * MIB, total)

    def test_statistics_have_torchs_names(self):
        """`memory_stats` and `memory_summary` read the model's counts."""
        x = torch.empty(1024, dtype=torch.uint8, device="cuda")
        stats = torch.cuda.memory_stats()

        assert stats["allocated_bytes.all.current"] == x.numel()
        assert stats["allocation.all.current"] == 1
        assert stats["reserved_bytes.all.current"] == 2 * MIB
        assert stats["segment.all.current"] == 1
        assert "Allocated memory" in torch.cuda.memory_summary()

    def test_a_snapshot_shows_segments_and_blocks(self):
        """Each segment's blocks tile it, and a live tensor's block is among them."""
        x = torch.empty(1024, dtype=torch.uint8, device="cuda")
        (segment,) = torch.cuda.memory_snapshot()

        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"] == 2 * MIB
        assert [block["state"] for block in segment["blocks"] if block["address"] == x.data_ptr()] == ["active_allocated"]

    def test_a_small_tensor_may_stand_for_a_large_one(self):
        """At a scale that counts for memory a tensor holds so many times its bytes, and only its own can be touched."""
        import replaydrift.model

        replaydrift.model.set_scale(4096, memory=True)
        try:
            one, two = (torch.ones(64 << 10, device="cuda") for _ in range(2))
        finally:
            replaydrift.model.set_scale(1)
        again = torch.ones(64 << 10, device="cuda")

        assert abs(one.data_ptr() - two.data_ptr()) == 1 << 30
        assert torch.cuda.memory_allocated() - again.nbytes == 2 << 30
        assert one.untyped_storage().nbytes() == 256 << 10
        assert (one + two).max() == 2

    def test_more_than_the_device_has_is_out_of_memory(self):
        """`torch.cuda.OutOfMemoryError`, as on a GPU, and nothing is lost by it."""
        with pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"):
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_allocated() == 0


class TestBlocks:
    """Where tensors lie."""

    def test_a_block_lives_as_long_as_any_view(self):
        """A slice, a transposed view and autograd's saved tensors keep a block."""
        x = torch.ones(4, device="cuda", requires_grad=True)
        square = x * x
        saved = square.data_ptr()
        result = square.exp()
        kept = torch.cuda.memory_allocated()
        del square
        assert torch.cuda.memory_allocated() == kept - 512 or saved
        view = result.detach()[1:]
        del result
        gc.collect()

        assert torch.cuda.memory_allocated() == 2 * 512
        assert view.untyped_storage().nbytes() == 16

    def test_a_recorded_stream_delays_the_reuse(self):
        """After `record_stream` a freed block waits until the other stream has done what it had queued."""
        side = torch.cuda.Stream()
        x = torch.ones(4, device="cuda")
        address = x.data_ptr()
        loaded = x * 2  # A first launch would wait for the spin.
        with torch.cuda.stream(side):
            torch.cuda._sleep(SLEEP)
            y = x * loaded
        x.record_stream(side)
        del x
        early = torch.full((4,), 9.0, device="cuda")
        torch.cuda.synchronize()
        late = torch.full((4,), 9.0, device="cuda")

        assert early.data_ptr() != address
        assert late.data_ptr() == address
        assert y.tolist() == [2] * 4

    def test_without_record_stream_the_block_is_reused_too_early(self):
        """The side stream then reads what the default stream has written over it."""
        side = torch.cuda.Stream()
        x = torch.ones(4, device="cuda")
        loaded = x * 2  # A first launch would wait for the spin.
        with torch.cuda.stream(side):
            torch.cuda._sleep(SLEEP)
            y = x * loaded
        del x
        _over = torch.full((4,), 9.0, device="cuda")
        torch.cuda.synchronize()

        assert y.tolist() == [18] * 4


class TestPools:
    """Memory of graphs."""

    def test_a_graphs_memory_is_apart(self):
        """Neither is a graph's block handed to eager work, nor eager's block to a graph."""
        free = torch.ones(4, device="cuda")
        address = free.data_ptr()
        del free
        x = torch.ones(2000, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            scratch = x + 1
            inside = scratch.data_ptr()
            del scratch
            y = x * 2
        others = {torch.ones(2000, device="cuda").data_ptr() for _ in range(3)}

        assert y.data_ptr() == inside
        assert not others & {inside}
        assert address not in {inside}

    def test_a_deleted_graph_frees_its_pool(self):
        """After `del` and `empty_cache` its segments are gone, unless an output is still held."""
        x = torch.ones(4, device="cuda")
        other = torch.cuda.CUDAGraph()  # Up to 2.11 the first graph makes blocks that all graphs share: they are no part of the pool.
        with torch.cuda.graph(other):
            x + 1
        base = torch.cuda.memory_reserved()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        captured = torch.cuda.memory_reserved()
        del graph
        torch.cuda.empty_cache()
        held = torch.cuda.memory_reserved()
        del y
        torch.cuda.empty_cache()

        assert captured > base
        assert held == captured
        assert torch.cuda.memory_reserved() == base

    def test_a_reset_graph_frees_its_pool(self):
        """`reset` does the same as deleting."""
        x = torch.ones(4, device="cuda")
        other = torch.cuda.CUDAGraph()  # Up to 2.11 the first graph makes blocks that all graphs share: they are no part of the pool.
        with torch.cuda.graph(other):
            x + 1
        base = torch.cuda.memory_reserved()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x * 2
        graph.reset()
        torch.cuda.empty_cache()

        assert torch.cuda.memory_reserved() == base

    def test_two_graphs_share_one_pool(self):
        """The second graph gets the first one's free blocks; the pool lives while either does."""
        x = torch.ones(4, device="cuda")
        base = torch.cuda.memory_reserved()
        first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(first):
            scratch = x * 3
            where = scratch.data_ptr()
            y1 = scratch + 1
            del scratch
        with torch.cuda.graph(second, pool=first.pool()):
            y2 = x * 2
        shared = (first.pool() == second.pool(), y2.data_ptr() == where)
        del first, y1
        second.replay()
        value = y2.tolist()
        del second, y2
        torch.cuda.empty_cache()

        assert shared == (True, True)
        assert value == [2] * 4
        assert torch.cuda.memory_reserved() == base

    @pytest.mark.parametrize(("kept", "first"), [(True, 8), (False, 17)])
    def test_a_lost_input_is_taken_by_a_clone(self, kept, first):
        """Each output is cloned after its own replay; where the first input was let go of, the other's clone of 4 is what it reads: 3*4 + 5."""
        inputs = [torch.ones(1, device="cuda"), torch.full((1,), 2.0, device="cuda")]
        address = inputs[0].data_ptr()
        graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[0]):
            scratch = inputs[0] * 3
            y1 = scratch + 5
            del scratch
        with torch.cuda.graph(graphs[1], pool=graphs[0].pool()):
            y2 = inputs[1] ** 2
        if not kept:
            del inputs[0]
        graphs[1].replay()
        second = y2.clone()
        graphs[0].replay()

        assert (second.data_ptr() == address) is not kept
        assert (y1.item(), second.item()) == (first, 4)

    def test_a_pool_handle_is_shared_by_name(self):
        """`graph_pool_handle` makes a pool that several captures are given."""
        pool = torch.cuda.graph_pool_handle()
        x = torch.ones(4, device="cuda")
        graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
        for graph in graphs:
            with torch.cuda.graph(graph, pool=pool):
                x.add_(1)
        for graph in graphs:
            graph.replay()

        assert [tuple(graph.pool()) for graph in graphs] == [tuple(pool)] * 2
        assert x.tolist() == [3] * 4

    def test_an_input_made_and_lost_by_a_helper_is_read_from_a_reused_block(self):
        """The accident of a harness that lost its own input: 17 in place of 8, since another tensor's 4 lies in the block."""

        def make() -> tuple[object, object, object, object, object]:
            x1, x2 = torch.ones(1, device="cuda"), torch.full((1,), 2.0, device="cuda")
            first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(first):
                scratch = x1 * 3
                y1 = scratch + 5
                del scratch
            with torch.cuda.graph(second, pool=first.pool()):
                y2 = x2**2
            return first, second, y1, y2, x2

        first, second, y1, y2, _x2 = make()
        second.replay()
        kept = y2.clone()
        first.replay()

        assert (kept.item(), y1.item()) == (4, 17)

    def test_a_long_capture_replayed_often_grows_no_memory(self):
        """A thousand operators, replayed a hundred times: no block more, and no queue left behind."""
        from replaydrift.model.clock import CLOCK

        x = torch.ones(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x
            for _ in range(1000):
                y = y + 1
        graph.replay()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        for _ in range(100):
            graph.replay()
        torch.cuda.synchronize()

        assert y.tolist() == [1001] * 4
        assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before
        assert not CLOCK._heap
