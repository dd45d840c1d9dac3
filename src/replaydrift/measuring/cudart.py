"""The CUDA runtime that this torch has loaded, by ctypes: the nodes of a graph, and launches that go round torch.

Handles are what `CUDAGraph.raw_cuda_graph()` and `raw_cuda_graph_exec()` give. The CPU model's handles stand for nothing: its nodes
are counted by asking the model.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any


class NoRuntimeError(RuntimeError):
    """The CUDA runtime cannot be called from here; the text says why."""


def node_count(graph: Any) -> int:
    """How many nodes a graph has that was captured with keep_graph=True; NoRuntimeError where nobody can tell."""
    nodes = getattr(graph, "_nodes", None)
    if nodes is not None:  # The CPU model's.
        return len(nodes)
    function, number = _function("cudaGraphGetNodes"), ctypes.c_size_t()
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    try:
        _check("cudaGraphGetNodes", function(graph.raw_cuda_graph(), None, ctypes.byref(number)))
    except (AttributeError, ctypes.ArgumentError) as error:
        raise NoRuntimeError(f"the nodes of a graph cannot be counted: {error}") from error
    return number.value


def launcher(graph: Any) -> Callable[[], object]:
    """A call that launches the instantiated graph on the current stream and does nothing else; NoRuntimeError where there is no way."""
    import torch

    if getattr(graph, "_nodes", None) is not None:
        raise NoRuntimeError("the CPU model has no CUDA runtime to call")
    if not hasattr(graph, "raw_cuda_graph_exec"):
        raise NoRuntimeError(f"torch {torch.__version__} has no CUDAGraph.raw_cuda_graph_exec")
    function = _function("cudaGraphLaunch")
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    executable, stream = ctypes.c_void_p(graph.raw_cuda_graph_exec()), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _check("cudaGraphLaunch", function(executable, stream))
    return lambda: function(executable, stream)


@lru_cache(maxsize=1)
def _runtime() -> Any:
    """The library, which was loaded into this process together with torch."""
    with open("/proc/self/maps") as file:
        paths = sorted({line.split(maxsplit=5)[5].strip() for line in file if "/libcudart" in line and ".so" in line})
    if not paths:
        raise NoRuntimeError(f"torch {sys.modules['torch'].__version__} has loaded no libcudart.so that could be called")
    return ctypes.CDLL(paths[0])


def _function(name: str) -> Any:
    try:
        return getattr(_runtime(), name)
    except (AttributeError, OSError) as error:
        raise NoRuntimeError(f"the CUDA runtime that torch has loaded has no {name}: {error}") from error


def _check(name: str, status: int) -> None:
    if status != 0:
        raise NoRuntimeError(f"{name} failed with CUDA error {status}")
