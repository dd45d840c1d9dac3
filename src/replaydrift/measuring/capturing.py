"""Captures of a step as people write them, on a stream that was warmed up, and the memory that the graphs hold.

A library may allocate once a stream what it works in, as cuBLAS does up to torch 2.14, and a release may drop that when a graph of the
stream dies. An eager step on the stream before each capture makes it anew, outside the graph's pool: a graph then costs the same whether
it is the first or the tenth of its process. Where each call takes such memory for itself, it lies in every graph's pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

WARMUPS: Final = 3


def warm_up(step: Callable[[], object], stream: Any, steps: int = WARMUPS) -> float:
    """Milliseconds of so many eager steps on the capture stream until the GPU is done."""
    import torch

    torch.cuda.synchronize()
    begun = time.perf_counter()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(steps):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) * 1000


def start_afresh() -> None:
    """Give back all memory that is cached, and what cuBLAS keeps, so that what is allocated from here on is counted whole."""
    import torch

    torch.cuda.synchronize()
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()
    torch.cuda.empty_cache()


def capture(step: Callable[[], Any], stream: Any, pool: Any = None) -> tuple[Any, Any]:
    """The graph of the step, ready to be replayed, and what the step returned while it was captured."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):
        output = step()
    return graph, output


def pool_bytes(graphs: Iterable[Any]) -> int:
    """Bytes that the private pools of these graphs hold on the device; a pool that several share counts once."""
    import torch

    pools = {tuple(graph.pool()) for graph in graphs}
    return sum(segment["total_size"] for segment in torch.cuda.memory_snapshot() if tuple(segment.get("segment_pool_id", ())) in pools)
