"""Random operators: each with the generator set for its turn.

`philox` gives uniform and normal numbers in float32 a GPU's bits; all others, dropout's masks among them, can be compared with each
other, never with numbers of real hardware.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch

from replaydrift.model import philox
from replaydrift.model.device import DEVICE
from replaydrift.model.generators import UNWRITTEN, default_state, join, state_of
from replaydrift.model.operators import Operator


def run(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator, execute: Callable[..., Any]) -> Any:
    """The results of a random operator: `execute` runs, queues or records it with the generator set for its turn."""
    generator = kwargs.get("generator")
    state = default_state() if generator is None else state_of(generator)
    amount = philox.PER_DRAW * philox.draws(_largest(args, kwargs))
    capture = DEVICE.capture
    if capture is None:
        base, relative = [state.take(amount)], 0
    else:
        relative = join(state, capture)
        base = capture.random_bases[state]
        capture.generators[state] = relative + amount
    rest = {**kwargs, "generator": None} if "generator" in kwargs else kwargs

    def seeded(*call_args: Any, **call_kwargs: Any) -> Any:
        source = torch.default_generator
        saved = source.get_state()
        seed, start = (0, 0) if base[0] == UNWRITTEN else (state.seed, base[0])
        source.manual_seed(_mix(seed, start + relative))
        try:
            made = func(*call_args, **call_kwargs)
            return philox.overwrite(made, traits.name, call_args, call_kwargs, seed, start + relative)
        finally:
            source.set_state(saved)

    return execute(seeded, args, rest, traits, plain=func)


def undisturbed(call: Callable[..., Any], *args: Any) -> Any:
    """What `call` returns, with the CPU's own generator left as it was."""
    saved = torch.default_generator.get_state()
    try:
        return call(*args)
    finally:
        torch.default_generator.set_state(saved)


def _mix(seed: int, offset: int) -> int:
    digest = hashlib.blake2b(seed.to_bytes(8, "little") + offset.to_bytes(16, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _largest(args: Any, kwargs: dict[str, Any]) -> int:
    sizes = [tensor.numel() for tensor in args if isinstance(tensor, torch.Tensor)]
    shapes = [value for value in args if isinstance(value, list | tuple) and value and all(isinstance(n, int) for n in value)]
    for shape in shapes:
        product = 1
        for length in shape:
            product *= length
        sizes.append(product)
    return max(sizes, default=1)
