"""The device's generator is there once CUDA has been used, and not before."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled


def test_the_default_generator_comes_with_the_first_use():
    """Reading the tuple starts nothing; asking for the current device does."""
    assert torch.cuda.default_generators == ()
    torch.cuda.current_device()
    assert len(torch.cuda.default_generators) == 1


def test_an_operator_starts_cuda():
    """So does a tensor."""
    torch.zeros(1, device="cuda")
    assert len(torch.cuda.default_generators) == 1


@pytest.mark.parametrize("seed", ["manual_seed", "manual_seed_all"])
def test_seeding_before_the_first_use_counts(seed):
    """Torch puts it off until then; the numbers drawn are those of the seed."""
    getattr(torch.cuda, seed)(7)
    first = torch.rand(4, device="cuda").tolist()
    torch.manual_seed(7)
    assert torch.rand(4, device="cuda").tolist() == first
    torch.cuda.manual_seed(8)
    assert torch.rand(4, device="cuda").tolist() != first
