"""Host memory in copies and launches: which pinned memory a copy touches in place, and what becomes of a number on the host."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

PAGEABLE = "unless the CPU tensor is pinned"


def _captured(body):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = body()
    return graph, y


class TestBlocks:
    """Which pinned memory is handed out again once its tensor is gone."""

    def test_a_block_from_before_the_capture_goes_to_the_next_tensor(self):
        """A graph that copies from it then copies what that one holds."""
        host = torch.full((4,), 3.0).pin_memory()
        address, target, graph = host.data_ptr(), torch.zeros(4, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            target.copy_(host, non_blocking=True)
        del host
        other = torch.full((4,), 104.0).pin_memory()
        graph.replay()

        assert other.data_ptr() == address
        assert target.tolist() == [104] * 4

    def test_a_block_from_before_the_capture_that_is_let_go_within_it_is_lost(self):
        """The event that tells when it is free becomes part of the capture. The next tensor asks it, which is an error, and then forgets it."""
        host, graph = torch.full((4,), 3.0).pin_memory(), torch.cuda.CUDAGraph()
        address = host.data_ptr()
        with torch.cuda.graph(graph):
            y = host.to("cuda", non_blocking=True)
            del host
            inside = torch.full((4,), 5.0).pin_memory()
        with pytest.raises(RuntimeError, match="invalid argument"):
            torch.full((4,), 6.0).pin_memory()
        after = torch.full((4,), 6.0).pin_memory()
        graph.replay()

        assert address not in (inside.data_ptr(), after.data_ptr())
        assert y.tolist() == [3] * 4

    def test_a_block_without_copies_is_free_at_once_in_its_own_pool(self):
        """A capture has a pool of its own for pinned memory too."""
        before = torch.full((4,), 3.0).pin_memory()
        outside = before.data_ptr()
        del before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            inside = [torch.full((4,), 5.0).pin_memory().data_ptr() for _ in range(2)]
            torch.ones(1, device="cuda")

        assert inside[0] == inside[1] != outside
        assert torch.full((4,), 6.0).pin_memory().data_ptr() == outside

    def test_blocks_come_back_in_the_order_of_their_events(self):
        """One that is still copied keeps those back that were let go later."""
        slow, fast = (torch.full((4,), 3.0).pin_memory() for _ in range(2))
        addresses = slow.data_ptr(), fast.data_ptr()
        target, side = torch.zeros(4, device="cuda"), torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(10_000_000)
            target.copy_(slow, non_blocking=True)
        target.copy_(fast, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        del slow
        del fast
        assert torch.full((4,), 1.0).pin_memory().data_ptr() not in addresses
        torch.cuda.synchronize()
        assert torch.full((4,), 1.0).pin_memory().data_ptr() in addresses

    def test_a_block_made_in_the_capture_is_withheld_for_ever(self):
        """Its tensor is gone when the line ends, and the replay reads it all the same. Not even the end of the graph brings it back."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            host = torch.full((4,), 3.0).pin_memory()
            address, y = host.data_ptr(), host.to("cuda", non_blocking=True)
            del host
        other = torch.full((4,), 104.0).pin_memory()
        graph.replay()

        assert other.data_ptr() != address
        assert y.tolist() == [3] * 4
        graph.reset()
        assert torch.full((4,), 5.0).pin_memory().data_ptr() != address


class TestLayouts:
    """A copy in one piece reads pinned memory in place; any other goes through pageable memory."""

    def test_a_transposed_tensor_is_one_piece(self):
        """A transposed pinned tensor is copied with its strides, and read again at each replay."""
        host = torch.zeros(2, 3, pin_memory=True)
        graph, y = _captured(lambda: host.t().to("cuda", non_blocking=True))
        host.copy_(torch.arange(6.0).view(2, 3))
        graph.replay()

        assert y.tolist() == [[0, 3], [1, 4], [2, 5]]

    def test_a_transposed_tensor_into_a_plain_one_is_refused(self):
        """The target's order is another, so the host's elements are put in order first."""
        host, target = torch.zeros(2, 3, pin_memory=True), torch.zeros(3, 2, device="cuda")
        with pytest.raises(RuntimeError, match=PAGEABLE):
            _captured(lambda: target.copy_(host.t(), non_blocking=True))

    def test_a_number_spread_over_a_tensor_is_refused(self):
        """One pinned element into eight is no copy in one piece."""
        host, target = torch.ones(1, pin_memory=True), torch.zeros(8, device="cuda")
        with pytest.raises(RuntimeError, match=PAGEABLE):
            _captured(lambda: target.copy_(host, non_blocking=True))
        assert target.copy_(host).tolist() == [1] * 8

    def test_a_download_into_steps_is_refused(self):
        """A target that is not in one piece is filled from pageable memory."""
        host, x = torch.zeros(8, pin_memory=True), torch.ones(4, device="cuda")
        with pytest.raises(RuntimeError, match=PAGEABLE):
            _captured(lambda: host[::2].copy_(x, non_blocking=True))
        host[::2].copy_(x)
        assert host.tolist() == [1, 0] * 4

    def test_steps_in_eager_code_are_read_at_the_call(self):
        """Put in order on the host, they are no longer the memory that the host writes next."""
        host = torch.ones(8, pin_memory=True)
        torch.cuda._sleep(1_000_000)
        y = host[::2].to("cuda", non_blocking=True)
        host.fill_(9)
        assert y.tolist() == [1] * 4


def test_a_conversion_without_waiting_is_made_on_the_device():
    """So the pinned memory is read at each replay; with waiting it is made on the host, and refused."""
    host = torch.zeros(2, pin_memory=True)
    graph, y = _captured(lambda: host.to("cuda", torch.float64, non_blocking=True))
    host.fill_(3)
    graph.replay()
    assert (y.tolist(), y.dtype) == ([3, 3], torch.float64)
    with pytest.raises(RuntimeError, match=PAGEABLE):
        _captured(lambda: host.to("cuda", torch.float64))


def test_a_number_on_the_host_is_frozen():
    """A CPU tensor without dimensions goes into a kernel by value, pinned or not."""
    x = torch.ones(2, device="cuda")
    for factor in (torch.tensor(2.0), torch.tensor(2.0).pin_memory()):
        graph, y = _captured(lambda factor=factor: x * factor)
        factor.fill_(5)
        graph.replay()
        assert y.tolist() == [2, 2]


def test_pinned_memory_is_counted():
    """`host_memory_stats` counts blocks in powers of two: those there are, and those in use."""
    x = torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True)
    stats = torch.cuda.host_memory_stats()
    assert (stats["allocated_bytes.current"], stats["active_bytes.current"], stats["num_host_alloc"]) == (4 << 20, 4 << 20, 1)
    del x
    y = torch.empty(4 << 20, dtype=torch.uint8, pin_memory=True)
    again = torch.cuda.host_memory_stats()
    assert (again["allocated_bytes.current"], again["active_bytes.current"], again["num_host_alloc"]) == (4 << 20, 4 << 20, 1)
    assert y.is_pinned()
