"""The random numbers of a GPU: Philox4x32-10, laid out over threads as torch's kernels for uniform and normal numbers do.

Element `i` of a tensor comes from thread `i` of a grid that fills the GPU, which draws four words at a time from a sequence of its own. So
numbers depend on the seed, on the generator's offset, and, for large tensors only, on how many threads fill the GPU: those of an H200 here.
The numbers of tensors in float32 are an H200's, up to the last bit of its logarithm, sine and cosine. Operators that draw in another
way (dropout, integers, other types) are not among them.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"; cuRAND's documentation; torch's DistributionTemplates.h.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

PER_DRAW: Final = 4  # words that a thread draws at a time: how far an operator moves the offset
BLOCK: Final = 256
THREADS: Final = 132 * 2048  # on an H200 at once

_Words = np.ndarray[Any, np.dtype[np.uint64]]
_Floats = np.ndarray[Any, np.dtype[np.float32]]
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_STEP: Final = np.float32(2.0**-32)
_UNIFORM: Final = ("aten::rand", "aten::rand_like", "aten::uniform_")
_NORMAL: Final = ("aten::randn", "aten::randn_like", "aten::normal_")


def draws(numel: int) -> int:
    """How often each thread draws for a tensor of this size."""
    return max(1, -(-numel // (PER_DRAW * _threads(numel))))


def overwrite(made: Any, name: str, args: Any, kwargs: Any, seed: int, offset: int) -> Any:
    """The same result of the random operator `name`, in place with a GPU's numbers where the operator and the type are known here."""
    uniform = name in _UNIFORM
    if not (uniform or name in _NORMAL) or made.dtype != torch.float32 or not made.is_contiguous() or not made.numel():
        return made
    first, second = _parameters(name, args, kwargs)
    values = (_uniform if uniform else _normal)(words(seed, offset, made.numel()))
    flat = torch.from_numpy(values.reshape(-1)[: made.numel()].copy()).view(made.shape)
    made.copy_(flat.mul_(second - first if uniform else second).add_(first))
    return made


def words(seed: int, offset: int, numel: int) -> _Words:
    """32 random bits for each element and some to spare, as an array of draws × 4 × threads."""
    thread: _Words = np.arange(_threads(numel), dtype=np.uint64)
    turn = np.arange(draws(numel), dtype=np.uint64)[:, None] + np.uint64(offset // PER_DRAW)
    counter = [np.broadcast_to(part, (turn.shape[0], thread.shape[0])) for part in (turn & _LOW, turn >> _HALF, thread, thread >> _HALF)]
    low, high = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        first, second = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (second >> _HALF) ^ counter[1] ^ np.uint64(low), second & _LOW,
            (first >> _HALF) ^ counter[3] ^ np.uint64(high), first & _LOW,
        ]  # fmt: skip
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(counter, axis=1)


def _threads(numel: int) -> int:
    return min(THREADS, -(-numel // BLOCK) * BLOCK)


def _parameters(name: str, args: Any, kwargs: Any) -> tuple[float, float]:
    """From and to of uniform numbers, mean and deviation of normal ones; only the forms that write into a tensor take any."""
    usual = (0.0, 1.0)
    if not name.endswith("_"):
        return usual
    names = ("from", "to") if name == "aten::uniform_" else ("mean", "std")
    first, second = (args[at] if at < len(args) else kwargs.get(names[at - 1], usual[at - 1]) for at in (1, 2))
    return float(first), float(second)


def _fractions(bits: _Words) -> _Floats:
    """Numbers above 0, up to 1."""
    return bits.astype(np.float32) * _STEP + _STEP / np.float32(2)


def _uniform(bits: _Words) -> _Floats:
    """Numbers from 0 on, below 1."""
    values = _fractions(bits)
    values[values == 1] = 0
    return values


def _normal(bits: _Words) -> _Floats:
    """Normal numbers, two of each pair of words, by the method of Box and Muller."""
    radius = np.sqrt(np.float32(-2) * np.log(_fractions(bits[:, 0::2])))
    angle = _fractions(bits[:, 1::2]) * np.float32(2 * np.pi)
    values: _Floats = np.empty(bits.shape, dtype=np.float32)
    values[:, 0::2], values[:, 1::2] = radius * np.sin(angle), radius * np.cos(angle)
    return values
