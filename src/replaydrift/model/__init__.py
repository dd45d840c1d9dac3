"""A CPU model of CUDA graphs: streams, capture, replay and the caching allocator under the real Python of the installed torch.

`install()` makes `torch.cuda` work with no GPU, so that unmodified code runs. What comes out says what our understanding of
CUDA implies; it is no evidence about hardware, and every record made with it says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VERSION = 1
_installed: ModelInfo | None = None


class ModelRefused(RuntimeError):  # noqa: N818 - what the model does
    """The model does not work with this torch or on this machine; the message says which check failed."""


@dataclass(frozen=True)
class ModelInfo:
    """The model that is installed: its version, the assumed durations, the written rules in force for this torch."""

    version: int
    costs: dict[str, float]
    rules: dict[str, str]


def install(scale: float = 1.0) -> ModelInfo:
    """The model's facts, once it is in place in this process; ModelRefused where it could give wrong verdicts.

    Import torch first. `scale` multiplies assumed durations, so that a small tensor stands for a large one.
    """
    global _installed  # noqa: PLW0603 - a process has one model
    if _installed is None:
        _check_platform()
        import torch

        from replaydrift.model import autocast, factories, rules, runtime, special, tensors
        from replaydrift.model.costs import COSTS
        from replaydrift.model.dispatch import CudaModel
        from replaydrift.model.selftest import failures

        if not rules.knows(torch.__version__):
            raise ModelRefused(
                f"found torch {torch.__version__}: the CPU model knows torch {'.'.join(map(str, rules.OLDEST))} and newer, and would be wrong "
                "about what older ones refuse in a capture. Use a newer release, or a GPU"
            )
        torch.set_num_threads(1)  # A pool of threads would not survive the fork of an attempt.
        rules.put_in_force(torch.__version__)
        runtime.install()
        tensors.install()
        factories.install()
        special.install()
        autocast.install()
        CudaModel().__enter__()
        found = failures()
        if found:
            raise ModelRefused(
                f"the CPU model refuses torch {torch.__version__}: {'; '.join(found)}. Use a release that it knows, or a GPU"
            )
        _fresh()
        _installed = ModelInfo(VERSION, COSTS.as_table(), dict(rules.RULES_IN_FORCE))
    set_scale(scale)
    return _installed


def set_scale(scale: float, *, memory: bool = False) -> None:
    """Multiply the assumed durations of kernels and copies from here on, and where asked to also the memory that tensors hold.

    What is held beyond a tensor's own bytes is address space alone, which costs nothing.
    """
    from replaydrift.model.costs import COSTS

    COSTS.scale = float(scale)
    COSTS.memory_scale = float(scale) if memory else 1.0


def info() -> dict[str, Any]:
    """The installed model's facts, as JSON keeps them; ModelRefused where none is installed."""
    if _installed is None:
        raise ModelRefused("the CPU model is not installed in this process: call replaydrift.model.install()")
    return {"version": _installed.version, "costs": _installed.costs, "rules": sorted(_installed.rules)}


def rules_used() -> list[str]:
    """The keys of the written rules that were used in this process since the model was installed, sorted."""
    from replaydrift.model import rules

    return rules.rules_used()


def _check_platform() -> None:
    import sys

    if not sys.platform.startswith("linux") or sys.maxsize <= 2**32 or sys.version_info < (3, 10):
        raise ModelRefused(
            f"found Python {sys.version.split()[0]} on {sys.platform!r}: the CPU model needs 64-bit Linux and Python 3.10 or newer"
        )


def _fresh() -> None:
    """Forget what the self-test left: its blocks, its time, the rules it used."""
    import gc

    import torch

    from replaydrift.model import arena, generators, loading, rules, starting
    from replaydrift.model.clock import CLOCK
    from replaydrift.model.device import DEVICE

    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.graph.default_capture_stream = None
    DEVICE.reset()
    arena.zero(arena.DEVICE_START, arena.DEVICE_BYTES)
    CLOCK.__init__()  # type: ignore[misc]
    rules._USED.clear()
    loading.forget()
    generators.default_generators()[0].manual_seed(torch.initial_seed())
    starting.stop()
