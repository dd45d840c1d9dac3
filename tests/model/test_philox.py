"""Uniform and normal numbers are those of a GPU. The values were drawn by an H200 with torch 2.11.0 to 2.15.0."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

AFTER_SEED_7 = [
    [0.9545971155166626, 0.49503979086875916, 0.9419531226158142, 0.592580258846283],
    [0.4069603979587555, 0.887346625328064, 0.9298859238624573, 0.587394654750824],
]
# Half of what results/verdicts/h200 has of freed-cuda-input/bug, which doubles them.
NORMAL_AFTER_SEED_0 = [-0.92466241, -0.42534423, -2.6438458, 0.14518386]


def test_uniform_numbers_are_bit_for_bit_an_h200s() -> None:
    """Draw after draw, eager and replayed."""
    torch.manual_seed(7)
    assert torch.rand(4, device="cuda").tolist() == AFTER_SEED_7[0]
    assert torch.empty(2, 2, device="cuda").uniform_().flatten().tolist() == AFTER_SEED_7[1]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.rand(4, device="cuda")
    torch.manual_seed(7)
    for expected in AFTER_SEED_7:
        graph.replay()
        assert y.tolist() == expected


def test_normal_numbers_are_an_h200s() -> None:
    """Up to the last bit, which differs between logarithms, sines and cosines."""
    torch.manual_seed(0)
    assert torch.randn(4, device="cuda").tolist() == pytest.approx(NORMAL_AFTER_SEED_0, rel=1e-5)
    torch.manual_seed(0)
    moved = torch.empty(4, device="cuda").normal_(mean=3.0, std=2.0)
    assert moved.tolist() == pytest.approx([3 + 2 * value for value in NORMAL_AFTER_SEED_0], rel=1e-5)


def test_a_range_is_kept() -> None:
    """Uniform numbers are stretched from 0 to 1 onto it."""
    torch.manual_seed(7)
    stretched = torch.empty(4, device="cuda").uniform_(2, 4)
    assert stretched.tolist() == pytest.approx([2 + 2 * value for value in AFTER_SEED_7[0]])


def test_a_large_tensor_is_laid_out_over_threads() -> None:
    """Once each thread has an element, the next one is the second word of the first thread; then the threads draw again."""
    from replaydrift.model import philox

    torch.manual_seed(7)
    numbers = torch.rand(4 * philox.THREADS + 1, device="cuda").cpu()
    torch.manual_seed(7)
    few = torch.rand(4 * philox.BLOCK, device="cuda").cpu()
    assert numbers[:4].tolist() == AFTER_SEED_7[0] == few[:4].tolist()
    assert numbers[4 * philox.THREADS] == pytest.approx(AFTER_SEED_7[1][0], abs=1e-7)
    words = philox.words(7, 0, 4 * philox.THREADS)
    assert numbers[philox.THREADS].item() == pytest.approx(float(words[0, 1, 0]) / 2**32, abs=1e-6)
    assert 0.49 < numbers.mean() < 0.51
    assert torch.cuda.default_generators[0].get_offset() == 4


def test_other_types_keep_numbers_of_their_own() -> None:
    """They follow the seed and lie where they should, but are not a GPU's."""
    torch.manual_seed(7)
    first = torch.rand(4, device="cuda", dtype=torch.float64)
    torch.manual_seed(7)
    assert torch.equal(first, torch.rand(4, device="cuda", dtype=torch.float64))
    assert first.tolist() != pytest.approx(AFTER_SEED_7[0])
