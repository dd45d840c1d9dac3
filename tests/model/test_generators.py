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


def test_a_state_in_a_capture_counts_from_its_beginning() -> None:
    """The state that is read in a capture has the seed, and the position within the graph; set again, it is gone back to."""
    torch.cuda.manual_seed(5)
    torch.rand(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        before = torch.cuda.get_rng_state()
        x = torch.rand(4, device="cuda")
        after = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(before)
        y = torch.rand(4, device="cuda")
    graph.replay()

    assert (bytes(before.tolist())[8:], bytes(after.tolist())[8:]) == (bytes(8), bytes([4, *bytes(7)]))
    assert torch.equal(x, y)
    assert torch.cuda.default_generators[0].get_offset() == 8


def test_a_capture_takes_only_the_seed_that_is_set() -> None:
    """In a capture the seed that a generator has is taken and changes nothing; another is refused, and the capture goes on."""
    torch.cuda.manual_seed(5)
    torch.rand(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda.manual_seed(5)
        x = torch.rand(4, device="cuda")
        with pytest.raises(RuntimeError, match="only if new seed is the same"):
            torch.cuda.manual_seed(6)
    graph.replay()

    assert torch.cuda.default_generators[0].get_offset() == 8
    assert x.unique().numel() == 4


def test_what_a_capture_cannot_hold_is_refused() -> None:
    """In a capture no generator is made or copied, and none says how far it has come."""
    torch.cuda.init()
    generator = torch.cuda.default_generators[0]
    graph, x = torch.cuda.CUDAGraph(), torch.ones(1, device="cuda")
    with torch.cuda.graph(graph):
        for ask in (lambda: torch.Generator(device="cuda"), generator.clone_state, generator.get_offset, lambda: generator.set_offset(8)):
            with pytest.raises(RuntimeError, match="during CUDA graph capture"):
                ask()
        x.add_(1)
    graph.replay()

    assert x.item() == 2


def test_generators_share_a_state() -> None:
    """What `graphsafe_get_state` gives draws from the same numbers, also once the generator has another state."""
    generator = torch.Generator(device="cuda").manual_seed(1)
    shared = generator.graphsafe_get_state()
    generator.graphsafe_set_state(torch.Generator(device="cuda").manual_seed(2))
    torch.rand(4, device="cuda", generator=shared)

    assert (shared.initial_seed(), shared.get_offset()) == (1, 4)
    assert (generator.initial_seed(), generator.get_offset()) == (2, 0)


def test_a_graph_that_leaves_its_generator_where_it_was_writes_no_position() -> None:
    """Its kernels find the position that the capture wrote, 0, up to 2.11, and what lies there from 2.12 on; never the generator's."""
    torch.cuda.manual_seed(5)
    first, second = (torch.rand(4, device="cuda").tolist() for _ in range(2))
    torch.cuda.manual_seed(5)
    torch.rand(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.random.fork_rng(devices=[0]):
        y = torch.rand(4, device="cuda")
    graph.replay()

    assert (y.tolist() == first) == (VERSION <= (2, 11))
    assert y.tolist() != second


def test_graphs_of_a_generator_share_its_position_up_to_2_11() -> None:
    """Up to 2.11 a graph that moves nothing draws from where another graph's replay began; later each has a position of its own."""
    torch.cuda.manual_seed(5)
    torch.rand(4, device="cuda")
    moving, y = torch.cuda.CUDAGraph(), torch.zeros(4, device="cuda")
    unmoved = torch.cuda.CUDAGraph()
    with torch.cuda.graph(unmoved), torch.random.fork_rng(devices=[0]):
        z = torch.rand(4, device="cuda")
    with torch.cuda.graph(moving):
        y.copy_(torch.rand(4, device="cuda"))
    moving.replay()
    unmoved.replay()

    assert torch.equal(y, z) == (VERSION <= (2, 11))
