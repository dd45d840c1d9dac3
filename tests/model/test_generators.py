"""Where the seed and the offset of captured random operators lie, as the sources of each release place them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def _captured(draws: bool) -> object:
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(torch.rand(4, device="cuda") if draws else 1)
    return graph, x


def _blocks_of_eight_bytes() -> list[tuple[int, tuple[int, int]]]:
    from replaydrift.model.device import DEVICE

    return [(block.stream, block.pool.id) for block in DEVICE.blocks.values() if block.requested == 8]


def test_a_capture_without_random_numbers_makes_blocks_up_to_2_13() -> None:
    """Seed and offset get a block each in the default pool at the start of a capture; from 2.14 on only once they are needed."""
    kept = _captured(draws=False)
    blocks = _blocks_of_eight_bytes()
    assert len(blocks) == (2 if VERSION <= (2, 13) else 0)
    assert all(pool == (0, 0) for _, pool in blocks)
    del kept


def test_a_capture_with_random_numbers_makes_two_blocks() -> None:
    """On every release a graph that draws has the two blocks: of the capturing stream up to 2.11, of the default stream since."""
    kept = _captured(draws=True)
    blocks = _blocks_of_eight_bytes()
    assert len(blocks) == 2
    assert all((stream == 0) == (VERSION >= (2, 12)) for stream, _ in blocks)
    del kept


def test_graphs_share_the_blocks_up_to_2_11() -> None:
    """Up to 2.11 a generator has one pair for all its graphs; since then every capture has its own."""
    kept = [_captured(draws=True) for _ in range(3)]
    assert len(_blocks_of_eight_bytes()) == (2 if VERSION <= (2, 11) else 6)
    del kept


def test_the_blocks_go_with_the_last_graph() -> None:
    """With the graphs go the blocks, whichever release made them."""
    kept = [_captured(draws=True) for _ in range(2)]
    kept.clear()
    assert _blocks_of_eight_bytes() == []
