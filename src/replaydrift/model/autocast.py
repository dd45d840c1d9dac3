"""Autocast for "cuda": the real C++ cache and casts of CPU autocast, with CUDA's list of operators kept in float32."""

from __future__ import annotations

from typing import Any, Final

import torch

# Operators that CUDA's autocast runs in float32 and CPU's leaves alone.
FLOAT32: Final = (
    "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softmax.int", "log_softmax.int", "sum", "sum.dim_IntList", "exp", "log",
    "prod", "prod.dim_int", "cumsum", "norm.Scalar", "layer_norm", "mse_loss", "cosine_similarity", "rsqrt", "reciprocal", "sinh", "cosh",
    "tan", "acos", "asin", "log10", "log2", "log1p", "expm1", "softplus", "nll_loss", "smooth_l1_loss", "kl_div", "l1_loss",
)  # fmt: skip
_LOW: Final = (torch.float16, torch.bfloat16)
_library: Any = None


def install() -> None:
    """Let "cuda" drive the autocast of the CPU as well."""
    global _library  # noqa: PLW0603 - a registration lives as long as its library object
    for name in ("set_autocast_enabled", "set_autocast_dtype"):
        setattr(torch, name, _both(getattr(torch, name)))
    _library = torch.library.Library("aten", "IMPL")
    for name in FLOAT32:
        operator, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, operator, None)
        if packet is None or (overload or "default") not in packet.overloads():
            continue
        full = f"aten::{name}"
        if not torch._C._dispatch_has_kernel_for_dispatch_key(full, "AutocastCPU"):
            _library.impl(name, _in_float32(getattr(packet, overload or "default")), "AutocastCPU")


def _both(original: Any) -> Any:
    def setter(*args: Any) -> None:
        original(*args)
        if args and args[0] == "cuda":
            original("cpu", *args[1:])

    setter.__name__ = original.__name__
    return setter


def _in_float32(overload: Any) -> Any:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
            if torch.get_autocast_dtype("cpu") in _LOW and torch.is_autocast_enabled("cuda"):
                args = tuple(_raised(value) for value in args)
            return overload(*args, **kwargs)

    return kernel


def _raised(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _LOW else value
