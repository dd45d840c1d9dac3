"""Calls of the CUDA runtime, with a runtime of Python functions in its place."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from replaydrift.measuring import cudart

COUNT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
GRAPH, EXECUTABLE, STREAM = 0x7F00_1234_5678, 0x7F00_8765_4321, 0x7F00_0000_0042


class Graph:
    """A graph with the handles that torch would give."""

    def raw_cuda_graph(self) -> int:
        """The handle of the graph."""
        return GRAPH

    def raw_cuda_graph_exec(self) -> int:
        """The handle of what can be launched."""
        return EXECUTABLE


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose current stream has a handle."""
    stream = SimpleNamespace(cuda_stream=STREAM)
    cuda = SimpleNamespace(current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.14.1+cu130", cuda=cuda))


def with_runtime(monkeypatch: pytest.MonkeyPatch, **functions: object) -> None:
    """Put these functions in the place of the runtime's."""
    monkeypatch.setattr(cudart, "_runtime", lambda: SimpleNamespace(**functions))


def test_nodes_are_what_the_runtime_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole handle is passed on, and no list of nodes is asked for."""

    def count(graph: int, nodes: int | None, number: object) -> int:
        assert (graph, nodes) == (GRAPH, None)
        number[0] = 70_000
        return 0

    with_runtime(monkeypatch, cudaGraphGetNodes=COUNT(count))

    assert cudart.node_count(Graph()) == 70_000


def test_an_error_of_the_runtime_is_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number is in the text."""
    with_runtime(monkeypatch, cudaGraphGetNodes=COUNT(lambda *_: 400))

    with pytest.raises(cudart.NoRuntimeError, match="cudaGraphGetNodes failed with CUDA error 400"):
        cudart.node_count(Graph())


def test_a_graph_that_gives_no_handle_has_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release without `raw_cuda_graph`, or a handle of a form that nobody knows, is no crash."""
    with_runtime(monkeypatch, cudaGraphGetNodes=COUNT(lambda *_: 0))

    with pytest.raises(cudart.NoRuntimeError, match="no attribute 'raw_cuda_graph'"):
        cudart.node_count(SimpleNamespace())
    with pytest.raises(cudart.NoRuntimeError, match="cannot be counted"):
        cudart.node_count(SimpleNamespace(raw_cuda_graph=object))


@pytest.mark.usefixtures("torch")
def test_a_launch_has_the_graph_and_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch is tried at once, and each call is one more."""
    seen: list[tuple[int, int]] = []
    with_runtime(monkeypatch, cudaGraphLaunch=LAUNCH(lambda *handles: seen.append(handles) or 0))

    launch = cudart.launcher(Graph())
    launch()

    assert seen == 2 * [(EXECUTABLE, STREAM)]


@pytest.mark.usefixtures("torch")
def test_what_torch_or_the_runtime_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release without the handle, and a library without the function."""
    with_runtime(monkeypatch)
    with pytest.raises(cudart.NoRuntimeError, match="has no cudaGraphLaunch"):
        cudart.launcher(Graph())
    with pytest.raises(cudart.NoRuntimeError, match=r"torch 2\.14\.1\+cu130 has no CUDAGraph\.raw_cuda_graph_exec"):
        cudart.launcher(SimpleNamespace())
