"""The workloads whose costs are followed over releases: chains of tiny kernels, an MLP and a decoder block.

A name says the size: `chain/1000` is a thousand kernels, `mlp/256` and `decoder/128` have that hidden size. All are small on purpose:
batch 1, where what a launch costs is most of the time. Weights come from a fixed seed. A workload's version is a hash of its code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from replaydrift.case_version import code_version

CHAIN_ELEMENTS: Final = 256
POSITIONS: Final = 64  # of the decoder block and the MLP where they are workloads of their own
HEADS: Final = 4
MLP_LAYERS: Final = 4
USUAL_SIZES: Final = {"mlp": 256, "decoder": 128}
_FLOAT_BYTES: Final = 4
_SEED: Final = 20240607


@dataclass(frozen=True)
class Workload:
    """A step that can be repeated and captured. `check(replay, output)` raises where a replay does not leave in the output of the
    captured step what eager code gives.
    """

    name: str
    version: str
    step: Callable[[], Any]
    moved_bytes: int  # what a step must read and write at least: each kernel of a chain, or all weights, inputs and outputs once
    check: Callable[[Callable[[], object], Any], None]


@dataclass(frozen=True)
class Model:
    """A network over a sequence: `run(hidden, length)` gives the hidden states of all positions and the mean of the first `length`.

    `hidden` is (positions, size); `length` is a tensor of one whole number on the same device. Positions from `length` on are padding.
    """

    name: str
    version: str
    size: int
    weights: dict[str, Any]
    run: Callable[[Any, Any], tuple[Any, Any]]

    def moved_bytes(self, positions: int) -> int:
        """What a run must read and write at least: all weights, the input and the output once."""
        held = sum(int(weight.numel()) for weight in self.weights.values())
        return _FLOAT_BYTES * (held + 2 * positions * self.size + self.size)


def workload(name: str) -> Workload:
    """The workload of this name, its tensors on the GPU; ValueError says which names there are."""
    kind, _, size = name.partition("/")
    if not size.isdecimal() or int(size) < 1 or kind not in ("chain", *_MODELS):
        raise ValueError(f"no workload {name!r}: expected chain/N, mlp/SIZE or decoder/SIZE")
    return _chain(int(size)) if kind == "chain" else _of_model(model(kind, int(size)))


def model(kind: str, size: int | None = None) -> Model:
    """The network `mlp` or `decoder` on the GPU, of this hidden size or its usual one; ValueError where there is no such network."""
    if kind not in _MODELS:
        raise ValueError(f"no model {kind!r}: expected {' or '.join(_MODELS)}")
    size = size or USUAL_SIZES[kind]
    if size % HEADS:
        raise ValueError(f"hidden size {size}: expected a multiple of {HEADS}")
    return _MODELS[kind](size)


def _chain(kernels: int) -> Workload:
    """So many kernels one after the other, each adding one to a few floats."""
    import torch

    x = torch.zeros(CHAIN_ELEMENTS, device="cuda")

    def step() -> Any:
        for _ in range(kernels):
            x.add_(1.0)
        return x

    def check(replay: Callable[[], object], output: Any) -> None:
        x.zero_()
        replay()
        _expect(output, torch.full_like(x, float(kernels)))
        x.zero_()

    return Workload(f"chain/{kernels}", version_of("chain"), step, 2 * _FLOAT_BYTES * CHAIN_ELEMENTS * kernels, check)


def _of_model(network: Model) -> Workload:
    """The network on a fixed input."""
    import torch

    hidden = random_input(POSITIONS, network.size)
    length = torch.full((1,), POSITIONS, device="cuda")

    def step() -> Any:
        return network.run(hidden, length)

    def check(replay: Callable[[], object], output: Any) -> None:
        """Another input is put in the place of the captured one."""
        before = hidden.clone()
        hidden.mul_(-0.5)
        right = network.run(hidden, length)
        replay()
        for seen, expected in zip(output, right, strict=True):
            _expect(seen, expected)
        hidden.copy_(before)

    return Workload(f"{network.name}/{network.size}", network.version, step, network.moved_bytes(POSITIONS), check)


def random_input(positions: int, size: int) -> Any:
    """The same normally distributed numbers each time, (positions, size), on the GPU."""
    import torch

    return torch.randn(positions, size, generator=torch.Generator().manual_seed(_SEED)).cuda()


def _weights(**shapes: tuple[int, ...]) -> dict[str, Any]:
    """Normally distributed weights of these shapes from a fixed seed, scaled to keep the size of what goes through them."""
    import torch

    chance = torch.Generator().manual_seed(_SEED + 1)
    return {name: (torch.randn(*shape, generator=chance) / shape[-1] ** 0.5).cuda() for name, shape in shapes.items()}


def _mean(hidden: Any, length: Any) -> Any:
    """The mean of the first `length` positions, padding masked on the GPU."""
    import torch

    padding = torch.arange(hidden.shape[0], device=hidden.device) >= length
    return hidden.masked_fill(padding.unsqueeze(1), 0.0).sum(0) / length


def _mlp(size: int) -> Model:
    """Four layers with a residual, each position by itself."""
    import torch

    weights = _weights(**{f"layer{number}": (size, size) for number in range(MLP_LAYERS)})

    def run(hidden: Any, length: Any) -> tuple[Any, Any]:
        for weight in weights.values():
            hidden = hidden + torch.relu(torch.nn.functional.linear(hidden, weight))
        return hidden, _mean(hidden, length)

    return Model("mlp", version_of("mlp"), size, weights, run)


def _decoder(size: int) -> Model:
    """Norm, causal attention of four heads, norm, and an MLP four times as wide, with residuals."""
    import torch
    from torch.nn import functional

    weights = _weights(qkv=(3 * size, size), out=(size, size), up=(4 * size, size), down=(size, 4 * size))

    def attention(hidden: Any) -> Any:
        positions = hidden.shape[0]
        query, key, value = functional.linear(hidden, weights["qkv"]).view(positions, 3, HEADS, size // HEADS).permute(1, 2, 0, 3)
        scores = query @ key.transpose(1, 2) * (size // HEADS) ** -0.5
        place = torch.arange(positions, device=hidden.device)
        scores = scores.masked_fill(place.unsqueeze(0) > place.unsqueeze(1), float("-inf"))
        mixed = torch.softmax(scores, -1) @ value
        return functional.linear(mixed.transpose(0, 1).reshape(positions, size), weights["out"])

    def run(hidden: Any, length: Any) -> tuple[Any, Any]:
        hidden = hidden + attention(functional.layer_norm(hidden, (size,)))
        inner = functional.linear(functional.layer_norm(hidden, (size,)), weights["up"])
        hidden = hidden + functional.linear(functional.gelu(inner), weights["down"])
        return hidden, _mean(hidden, length)

    return Model("decoder", version_of("decoder"), size, weights, run)


_MODELS: Final[dict[str, Callable[[int], Model]]] = {"mlp": _mlp, "decoder": _decoder}


def _expect(seen: Any, expected: Any) -> None:
    """RuntimeError where the two differ by more than rounding."""
    import torch

    if not torch.allclose(seen, expected, rtol=1e-3, atol=1e-3):
        raise RuntimeError(f"a replay gave another result than eager code: they differ by {float((seen - expected).abs().max()):.3g}")


def version_of(kind: str) -> str:
    """The version of a workload or network of this kind: twelve hex digits over its code."""
    return _version(f"_{kind}", *(["_of_model"] if kind in USUAL_SIZES else []))


@cache
def _version(*functions: str) -> str:
    source = Path(__file__).read_text(encoding="utf-8")
    return code_version(source, ast.parse(source), functions)
