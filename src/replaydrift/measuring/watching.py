"""A kind of `torch.cuda.CUDAGraph` that says what its capture cost, put in the place of torch's own.

What is captured need not know: `torch.cuda.graph`, `make_graphed_callables` and a case's own code make graphs of it. Where recording and
instantiation are wanted apart, every graph is made with keep_graph=True and instantiated as soon as its capture ends.
"""

from __future__ import annotations

import functools
import inspect
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from replaydrift.measuring import cudart

NO_KEEP_GRAPH: Final = "CUDAGraph(keep_graph=True) is new in torch 2.8"


@dataclass
class Watch:
    """What the captures cost since it was made: one number a capture, in milliseconds, and all nodes where they can be counted.

    `capture_ms` is what a capture takes with its instantiation; where the watch takes them `apart`, `record_ms` and `instantiate_ms` are
    filled instead, and the nodes are counted. `why_no_nodes` says why they were not.
    """

    apart: bool = False
    capture_ms: list[float] = field(default_factory=list)
    record_ms: list[float] = field(default_factory=list)
    instantiate_ms: list[float] = field(default_factory=list)
    nodes: int = 0
    why_no_nodes: str = ""
    _graphs: list[Any] = field(default_factory=list)

    @property
    def captures(self) -> int:
        """How many captures ended well."""
        return len(self._graphs)

    @property
    def graphs(self) -> list[Any]:
        """The graphs that still live and hold what was captured, in the order of their captures."""
        return [graph for graph in (reference() for reference in self._graphs) if graph is not None and _holds(graph)]

    def captured(self, graph: Any, begun: float) -> None:
        """Note that the graph's capture has just ended."""
        recorded = time.perf_counter()
        if self.apart:
            graph.instantiate()
            self.record_ms.append((recorded - begun) * 1000)
            self.instantiate_ms.append((time.perf_counter() - recorded) * 1000)
            self._count(graph)
        else:
            self.capture_ms.append((recorded - begun) * 1000)
        self._graphs.append(weakref.ref(graph))

    def _count(self, graph: Any) -> None:
        try:
            self.nodes += cudart.node_count(graph)
        except RuntimeError as error:  # The runtime's, or torch's where it does not give the graph.
            self.why_no_nodes = str(error).partition("\n")[0]


def _holds(graph: Any) -> bool:
    """False for a graph that was reset."""
    try:
        graph.pool()
    except RuntimeError:
        return False
    return True


def can_keep_graphs() -> bool:
    """True where this torch can capture and instantiate apart."""
    import torch

    return "keep_graph" in inspect.signature(torch.cuda.CUDAGraph.__new__).parameters


@contextmanager
def watching(watch: Watch | None = None) -> Iterator[Watch]:
    """The watch, or a new one, over all graphs that are made and captured meanwhile."""
    import torch

    watch, plain = Watch() if watch is None else watch, torch.cuda.CUDAGraph
    places = (torch.cuda, torch.cuda.graphs)
    for place in places:
        place.CUDAGraph = _watched(plain, watch)
    try:
        yield watch
    finally:
        for place in places:
            place.CUDAGraph = plain


def _watched(plain: Any, watch: Watch) -> type:
    arguments = (True,) if watch.apart else ()

    class CUDAGraph(plain):  # type: ignore[misc]
        """A graph that tells the watch of its capture."""

        def __new__(cls, *given: Any, **named: Any) -> Any:
            return plain.__new__(cls, *arguments) if arguments else plain.__new__(cls, *given, **named)

        def __init__(self, *given: Any, **named: Any) -> None:
            if arguments:
                super().__init__(*arguments)
            else:
                super().__init__(*given, **named)
            self._begun = 0.0

        def capture_begin(self, *given: Any, **named: Any) -> None:
            self._begun = time.perf_counter()
            super().capture_begin(*given, **named)

        def capture_end(self) -> None:
            super().capture_end()
            watch.captured(self, self._begun)

    for name in ("__new__", "__init__", "capture_begin", "capture_end"):  # A case may ask what arguments there are.
        functools.update_wrapper(getattr(CUDAGraph, name), getattr(plain, name))
    return CUDAGraph
