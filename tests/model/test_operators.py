"""Operators whose traits are easily taken for others': what waits for the device, what a shape depends on, what grows in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled


def _replayed(function: Callable[[Any], Any], x: Any, fresh: Any) -> tuple[Any, Any]:
    """What a graph gives after its input was rewritten, and what eager gives then."""
    function(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)
    x.copy_(fresh)
    graph.replay()
    return result.tolist(), function(x).tolist()


def test_indexing_by_a_device_tensor_is_recorded() -> None:
    """Whole-number indices on the device need no host: reading, writing and adding by them can be captured."""
    index = torch.tensor([0, 2], device="cuda")

    def function(x: Any) -> Any:
        y = x.clone()
        y[index] = 5
        y[:, index] += 1
        return y + x[index, index].sum() + x[index][:, index].sum()

    graphed, eager = _replayed(function, torch.ones(3, 3, device="cuda"), torch.arange(9.0).reshape(3, 3))
    assert graphed == eager


def test_repeats_need_their_total() -> None:
    """Repeats that lie on the device are counted on the host, unless their total is given."""
    repeats = torch.tensor([1, 2], device="cuda")
    x = torch.ones(2, device="cuda")
    graphed, eager = _replayed(lambda x: torch.repeat_interleave(x, repeats, output_size=3), x, torch.tensor([3.0, 4.0]))
    assert graphed == eager == [3, 4, 4]
    with pytest.raises(Exception, match="CUDA error"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.repeat_interleave(x, repeats)


def test_a_shape_may_depend_on_floats() -> None:
    """Two ranges in one graph have lengths of their own, though only a float tells them apart."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        short, long = torch.arange(0.0, 3.0, device="cuda"), torch.arange(0.0, 5.0, device="cuda")
    graph.replay()
    assert short.tolist() == [0, 1, 2]
    assert long.tolist() == [0, 1, 2, 3, 4]


def test_a_tensor_can_grow_in_place() -> None:
    """`resize_` beyond the storage keeps the elements and takes a block of the device that is large enough."""
    x = torch.arange(3.0, device="cuda")
    before = torch.cuda.memory_allocated()
    x.resize_(1000)
    assert x.is_cuda
    assert x[:3].tolist() == [0, 1, 2]
    assert torch.cuda.memory_allocated() - before == 4096 - 512


def test_handles_of_a_kept_graph() -> None:
    """A kept graph has handles that can be compared; one that was not kept says why it has none."""
    x = torch.ones(1, device="cuda")
    kept, plain = torch.cuda.CUDAGraph(keep_graph=True), torch.cuda.CUDAGraph()
    for graph in (kept, plain):
        with torch.cuda.graph(graph):
            x.add_(1)
    with pytest.raises(RuntimeError, match="until instantiate"):
        kept.raw_cuda_graph_exec()
    kept.instantiate()
    first = kept.raw_cuda_graph_exec()
    kept.instantiate()
    assert kept.raw_cuda_graph() != kept.raw_cuda_graph_exec() != first
    with pytest.raises(RuntimeError, match="keep_graph=true"):
        plain.raw_cuda_graph()


def test_a_pool_of_ones_own_holds_what_is_allocated_in_it() -> None:
    """`use_mem_pool` routes allocations to its pool, and a graph can capture into that pool."""
    pool = torch.cuda.MemPool()
    outside = torch.ones(3, device="cuda")
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(3, device="cuda")
    assert inside.data_ptr() in {block["address"] for segment in pool.snapshot() for block in segment["blocks"]}
    assert all(segment["address"] != outside.data_ptr() for segment in pool.snapshot())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        result = inside * 2
    graph.replay()
    assert result.tolist() == [2, 2, 2]


def test_an_external_stream_is_the_stream_of_its_handle() -> None:
    """A stream made from another's handle is that stream."""
    stream = torch.cuda.Stream()
    assert torch.cuda.ExternalStream(stream.cuda_stream).stream_id == stream.stream_id


def test_a_freed_input_is_found_by_torchs_own_check() -> None:
    """`check_input_liveness` of the releases that have it raises at the replay: the snapshot it asks for is of the graph's pool alone."""
    import inspect

    if "check_input_liveness" not in inspect.signature(torch.cuda.graph.__init__).parameters:
        pytest.skip("this torch has no such check")

    def capture() -> Any:
        x, graph = torch.ones(3, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, check_input_liveness=True):
            y = x * 2
        return graph, y

    graph, _ = capture()
    with pytest.raises(RuntimeError, match="1 dead tensor"):
        graph.replay()
