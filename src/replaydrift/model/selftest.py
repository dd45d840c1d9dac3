"""Checks at install. Where one fails, the model refuses to give verdicts rather than give wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from replaydrift.model import accumulation
from replaydrift.model.device import DEVICE


def _frees_with_the_last_view() -> bool:
    tensor = torch.ones(4, device="cuda")
    view, address = tensor[1:], tensor.data_ptr()
    del tensor
    alive = address in DEVICE.blocks
    del view
    return alive and address not in DEVICE.blocks


def _reuses_the_block() -> bool:
    first = torch.ones(4, device="cuda")
    address = first.data_ptr()
    del first
    return torch.ones(4, device="cuda").data_ptr() == address


def _replays_with_new_data() -> bool:
    x = torch.ones(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    x.fill_(5)
    graph.replay()
    return y.tolist() == [11, 11, 11]


def _keeps_pool_memory_apart() -> bool:
    x = torch.ones(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    other = [torch.ones(3, device="cuda") for _ in range(4)]
    return y.data_ptr() not in {tensor.data_ptr() for tensor in other}


def _replays_gradients_in_the_engines_order() -> bool:
    xs = tuple(torch.full((1,), float(i), device="cuda", requires_grad=True) for i in (1, 2, 3))
    graphed = torch.cuda.make_graphed_callables((lambda x: x**2 + 2 * x + 1,) * 3, tuple((x,) for x in xs))
    y0, y1 = graphed[0](xs[0]), graphed[1](xs[1])
    y0.backward()
    y2 = graphed[2](xs[2])
    y1.backward()
    y2.backward()
    return [float(x.grad) for x in xs] == [6.0, 3.0, 8.0]  # type: ignore[arg-type]


CHECKS: Final[tuple[tuple[str, Callable[[], bool]], ...]] = (
    ("a block is given back with the last view of its storage", _frees_with_the_last_view),
    ("a freed block is handed out again", _reuses_the_block),
    ("a replay reads new data through old addresses", _replays_with_new_data),
    ("memory of a graph's pool is not handed to others", _keeps_pool_memory_apart),
    ("the engine's accumulation can be recognised", accumulation.calibrate),
    ("gradients of interleaved graphed callables come out as on a GPU", _replays_gradients_in_the_engines_order),
)


def failures() -> list[str]:
    """The checks that do not hold here, in words; none where the model may be trusted as far as it goes."""
    found = []
    for name, holds in CHECKS:
        try:
            if not holds():
                found.append(name)
        except Exception as error:  # noqa: BLE001 - any error of the model is a reason to refuse
            found.append(f"{name} ({type(error).__name__}: {error})")
    return found
