"""Streams and events: order, concurrency, and what a capture makes of them."""

from __future__ import annotations

import contextlib
import time

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

SLEEP = 100_000_000  # cycles: 50 ms on the virtual clock


class TestEager:
    """Without a capture."""

    def test_a_stream_runs_in_order(self):
        """Work behind a sleeping kernel waits for it; reading the result waits too."""
        x = torch.zeros(1, device="cuda")
        torch.cuda._sleep(SLEEP)
        x += 1
        x *= 3

        assert x.item() == 3

    def test_another_stream_does_not_wait_by_itself(self):
        """A side stream that reads without waiting sees what was there before."""
        x = torch.zeros(1, device="cuda")
        x += 0  # A first launch would wait for the spin.
        side = torch.cuda.Stream()
        torch.cuda._sleep(SLEEP)
        x += 1
        with torch.cuda.stream(side):
            early = x.clone()
        side.synchronize()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            late = x.clone()
        torch.cuda.synchronize()

        assert (early.item(), late.item()) == (0, 1)

    def test_an_event_orders_two_streams(self):
        """`record` here and `wait_event` there make the side stream wait."""
        x = torch.zeros(1, device="cuda")
        side, event = torch.cuda.Stream(), torch.cuda.Event()
        torch.cuda._sleep(SLEEP)
        x += 1
        event.record()
        side.wait_event(event)
        with torch.cuda.stream(side):
            y = x * 10
        side.synchronize()

        assert y.item() == 10

    def test_an_event_tells_when_it_has_come(self):
        """`query` is False while the GPU is at work and True after `synchronize`; time is measured on the device."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(SLEEP)
        end.record()
        before = end.query()
        end.synchronize()

        assert (before, end.query()) == (False, True)
        assert begin.elapsed_time(end) == pytest.approx(50, rel=0.01)

    def test_an_event_without_timing_has_no_time(self):
        """`elapsed_time` asks for `enable_timing`, and for events that were recorded."""
        plain, timed, other = torch.cuda.Event(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        plain.record()
        timed.record()
        with pytest.raises(ValueError, match="enable_timing"):
            plain.elapsed_time(timed)
        with pytest.raises(ValueError, match="recorded"):
            timed.elapsed_time(other)

    def test_a_stream_can_be_asked(self):
        """`Stream.query` tells whether its work is done; time that the host sleeps passes for the device."""
        torch.cuda._sleep(20_000_000)
        busy = torch.cuda.current_stream().query()
        time.sleep(0.02)

        assert (busy, torch.cuda.current_stream().query()) == (False, True)

    def test_streams_are_told_apart(self):
        """Two streams differ; the current one is what the block says; the default one has handle 0."""
        first, second = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
        with torch.cuda.stream(first):
            inside = torch.cuda.current_stream()

        assert first == inside
        assert first != second
        assert second.priority == -1
        assert torch.cuda.default_stream() == torch.cuda.current_stream()
        assert torch.cuda.default_stream().cuda_stream == 0
        assert "cuda_stream=0x0" in repr(torch.cuda.default_stream())

    def test_a_freed_block_of_a_stream_is_reused_in_its_order(self):
        """Memory freed while a kernel still waits to read it goes to the next kernel of the same stream, without harm."""
        x = torch.ones(4, device="cuda")
        torch.cuda._sleep(SLEEP)
        y = x * 2
        address = x.data_ptr()
        del x
        z = torch.full((4,), 7.0, device="cuda")

        assert z.data_ptr() == address
        assert (y.tolist(), z.tolist()) == ([2] * 4, [7] * 4)


class TestCapture:
    """Streams and events while a graph is recorded."""

    def test_a_fork_and_join_is_recorded(self):
        """A side stream that waits for the capturing one and is waited for becomes a branch of the graph."""
        x, side = torch.ones(1, device="cuda"), torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            a = x + 1
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                b = a * 10
            c = a * 100
            torch.cuda.current_stream().wait_stream(side)
            d = b + c
        x.fill_(2)
        graph.replay()

        assert d.item() == 330

    def test_work_that_does_not_come_back_is_unjoined(self):
        """A branch that the capturing stream never waits for is an error at the end."""
        x, side = torch.ones(1, device="cuda"), torch.cuda.Stream()
        with pytest.raises(RuntimeError, match="unjoined work"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x + 1

    @pytest.mark.parametrize(("mode", "refused"), [("global", True), ("thread_local", True), ("relaxed", False)])
    def test_new_memory_for_a_stream_outside(self, mode, refused):
        """Beside a capture it is refused, and loses the capture, unless the mode allows it; memory in the cache is not new."""
        x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError) if refused else contextlib.nullcontext() as failure:
            with torch.cuda.graph(graph, capture_error_mode=mode):
                x += 1
                with torch.cuda.stream(torch.cuda.default_stream()):
                    torch.empty(8, device="cuda")
                    torch.empty(32 << 20, device="cuda")
        if refused:
            assert "not permitted when stream is capturing" in str(failure.value.__context__)

    def test_streams_come_round(self):
        """There are 32 for each priority; the next is the first again."""
        first = torch.cuda.Stream()
        others = [torch.cuda.Stream() for _ in range(31)]
        assert torch.cuda.Stream() == first
        assert first not in others
        assert all(torch.cuda.Stream(priority=-1) not in (first, *others) for _ in range(32))

    def test_a_capture_ends_where_it_began(self):
        """`capture_end` with another stream current is refused, and the capture is still on."""
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="must end on the same stream"):
            graph.capture_end()
        assert stream.is_capturing()

    def test_waiting_for_uncaptured_work_breaks_isolation(self):
        """A capturing stream cannot wait for an event that was recorded outside."""
        x, event = torch.ones(1, device="cuda"), torch.cuda.Event()
        event.record()
        with pytest.raises(RuntimeError) as failure, torch.cuda.graph(torch.cuda.CUDAGraph()):
            x + 1
            torch.cuda.current_stream().wait_event(event)
        chain = [str(failure.value), str(failure.value.__context__)]
        assert any("dependency created on uncaptured work in another stream" in text for text in chain)

    def test_a_captured_event_cannot_be_asked(self):
        """`query` and `synchronize` of an event recorded in a capture are refused."""
        x, event = torch.ones(1, device="cuda"), torch.cuda.Event()
        with pytest.raises(RuntimeError) as failure, torch.cuda.graph(torch.cuda.CUDAGraph()):
            x + 1
            event.record()
            event.query()
        chain = [str(failure.value), str(failure.value.__context__)]
        assert any("last recorded in a capturing stream" in text for text in chain)

    def test_timing_events_recorded_in_a_capture_have_times_after_a_replay(self):
        """Each replay stamps the events that the graph recorded."""
        begin, end = torch.cuda.Event(enable_timing=True, external=True), torch.cuda.Event(enable_timing=True, external=True)
        x = torch.ones(1, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            begin.record()
            torch.cuda._sleep(SLEEP)
            x += 1
            end.record()
        for _ in range(2):
            graph.replay()
            torch.cuda.synchronize()
            assert begin.elapsed_time(end) == pytest.approx(50, rel=0.01)

    def test_an_ordinary_timing_event_recorded_in_a_capture_has_no_time(self):
        """It is a place in the graph and no node, so it is refused after a replay too, in other words; recorded anew it has a time."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        x, graph = torch.ones(1, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            begin.record()
            x += 1
            end.record()
        graph.replay()
        torch.cuda.synchronize()
        with pytest.raises(RuntimeError, match="invalid argument"):
            begin.elapsed_time(end)
        begin.record()
        end.record()
        torch.cuda.synchronize()

        assert begin.elapsed_time(end) >= 0

    def test_an_external_event_has_no_time_before_the_first_replay(self):
        """It is made and was not recorded yet."""
        begin, end = torch.cuda.Event(enable_timing=True, external=True), torch.cuda.Event(enable_timing=True, external=True)
        x = torch.ones(1, device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            begin.record()
            x += 1
            end.record()
        assert end.query()
        with pytest.raises(RuntimeError, match="invalid resource handle"):
            begin.elapsed_time(end)

    @pytest.mark.parametrize("made", [True, False])
    def test_a_captured_wait_for_an_external_event(self, made):
        """Each replay waits for what was last recorded outside; for an event that was never recorded no wait is captured."""
        x, y, event, side = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda"), torch.cuda.Event(external=True), torch.cuda.Stream()
        if made:
            event.record()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            event.wait()
            y.copy_(x)
        with torch.cuda.stream(side):
            torch.cuda._sleep(SLEEP)
            x.fill_(1)
            event.record()
        graph.replay()
        torch.cuda.synchronize()

        assert y.item() == made

    def test_an_unmanaged_stream_computes_only_once(self):
        """Work that goes to a stream outside the capture runs during the capture and is missing from the graph."""
        x, outside = torch.ones(1, device="cuda"), torch.cuda.Stream()
        y = torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="relaxed"):
            z = x * 2
            with torch.cuda.stream(outside):
                y += 1
        for _ in range(3):
            graph.replay()

        assert (y.item(), z.item()) == (1, 2)

    def test_branches_overlap_in_time(self):
        """Two sleeping branches of a graph take as long as one; two in a row take twice as long."""
        side = torch.cuda.Stream()
        apart, in_a_row = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(apart):
            torch.cuda._sleep(0)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(SLEEP)
            torch.cuda._sleep(SLEEP)
            torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(in_a_row):
            torch.cuda._sleep(SLEEP)
            torch.cuda._sleep(SLEEP)
        times = []
        for graph in (apart, in_a_row):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))

        assert times == pytest.approx([50, 100], rel=0.01)

    def test_a_replay_waits_for_its_stream_only(self):
        """Replayed on a side stream, a graph does not wait for the default stream."""
        x = torch.zeros(1, device="cuda")
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x + 1
        torch.cuda._sleep(SLEEP)
        x.fill_(10)
        with torch.cuda.stream(side):
            graph.replay()
        side.synchronize()
        with torch.cuda.stream(side):
            early = y.item()
        torch.cuda.synchronize()
        graph.replay()

        assert (early, y.item()) == (1, 11)
