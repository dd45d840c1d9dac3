"""cuBLAS as a program meets it: handles of threads, and workspaces that stay, go with a graph, or are given back at once."""

from __future__ import annotations

import concurrent.futures
import os

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

WORKSPACE = 32 << 20


def _warm():
    x = torch.ones(2, 2, device="cuda")
    return x @ x


def _capture(stream=None):
    x, graph = torch.ones(2, 2, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y = x @ x
    return graph, x, y


def _policy():
    from replaydrift.model import rules

    return rules.RULES_IN_FORCE["blas-workspaces"]


class TestHandles:
    """Made on first use, and never in a capture."""

    def test_each_thread_has_its_own(self):
        """A warm thread's handle does not serve another; one that a thread has left does."""
        _warm()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            with pytest.raises(Exception, match="previous error during capture") as caught:
                executor.submit(_capture).result()
        assert "cublasCreate" in str(caught.value.__context__)
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            executor.submit(_warm).result()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            executor.submit(_capture).result()

    def test_backward_has_its_own(self):
        """A captured backward needs a backward before, for it runs in a thread of its own on a GPU."""
        x = torch.ones(2, 2, device="cuda", requires_grad=True)
        (x @ x).sum()
        with pytest.raises(Exception, match="previous error during capture"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                (x @ x).sum().backward()

    def test_asking_for_the_handle_makes_it(self):
        """`current_blas_handle` is enough of a warm-up."""
        torch.cuda.current_blas_handle()
        graph, _x, y = _capture()
        graph.replay()
        assert y.tolist() == [[2, 2], [2, 2]]


class TestWorkspaces:
    """Where they lie and how long."""

    def test_a_captured_one_lies_in_the_graphs_pool(self):
        """The pool of a graph with a matmul has a segment for it, in use for as long as the release keeps workspaces."""
        _warm()
        graph, _x, _y = _capture()
        segments = {segment["total_size"]: segment["allocated_size"] for segment in torch.cuda.memory_snapshot(graph.pool())}
        assert segments[WORKSPACE] == (0 if _policy() == "each-call" else WORKSPACE)

    def test_a_graph_that_ends_may_drop_those_of_its_stream(self):
        """Only in the releases that do so; the workspaces of other streams stay in any case."""
        _warm()
        first, second = _capture(), _capture()
        before = torch.cuda.memory_allocated()
        del second
        lost = before - torch.cuda.memory_allocated()
        assert (lost >= WORKSPACE) == (_policy() == "until-a-graph-ends")
        assert first is not None

    def test_the_size_is_the_environments(self):
        """CUBLAS_WORKSPACE_CONFIG is read as torch reads it: a sum of sizes times counts, in KiB."""
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8:4:2"  # Each test has a process of its own.
        torch.cuda.reset_peak_memory_stats()
        before, _result = torch.cuda.memory_allocated(), _warm()
        assert torch.cuda.max_memory_allocated() - before == (16 * 8 + 4 * 2) * 1024 + 2 * 512
