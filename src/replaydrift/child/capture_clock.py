"""How long the host spent between `capture_begin` and `capture_end`, by a light wrap of torch's own methods."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any


class CaptureClock:
    """Adds up the time of all captures of this process; `total_ms` is None while there was none."""

    def __init__(self) -> None:
        self.total_ms: float | None = None
        self._begun: dict[int, float] = {}

    def install(self) -> None:
        """Wrap the methods of `torch.cuda.CUDAGraph`; nothing happens where this torch has no such class."""
        torch = sys.modules.get("torch")
        graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
        if graph is None or not hasattr(graph, "capture_begin") or not hasattr(graph, "capture_end"):
            return
        graph.capture_begin = self._before(graph.capture_begin)
        graph.capture_end = self._after(graph.capture_end)

    def _before(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._begun[id(graph)] = time.perf_counter()
            return method(graph, *args, **kwargs)

        return capture_begin

    def _after(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(graph, *args, **kwargs)
            finally:
                begun = self._begun.pop(id(graph), None)
                if begun is not None:
                    self.total_ms = (self.total_ms or 0.0) + (time.perf_counter() - begun) * 1000

        return capture_end
