"""Errors as CUDA and torch give them: the class that this torch has, the text that CUDA prints."""

from __future__ import annotations

from typing import Final

import torch

# cudaError_t by what it is about: number, name, text.
INVALID_HANDLE: Final = (400, "cudaErrorInvalidResourceHandle", "invalid resource handle")
STREAM_CAPTURE_UNSUPPORTED: Final = (900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing")
CAPTURE_INVALIDATED: Final = (901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture")
UNJOINED: Final = (904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work")
ISOLATION: Final = (905, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream")
IMPLICIT: Final = (906, "cudaErrorStreamCaptureImplicit", "operation would make the legacy stream depend on a capturing blocking stream")
INVALID_VALUE: Final = (1, "cudaErrorInvalidValue", "invalid argument")
CAPTURED_EVENT: Final = (907, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream")

_ADVICE: Final = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


class LackError(NotImplementedError):
    """The script uses something that the CPU model does not have; the message names it."""


def lack(what: str, instead: str = "run it on a GPU") -> LackError:
    """The error for something that the model lacks."""
    return LackError(f"the CPU model of CUDA graphs lacks {what}: {instead}")


def cuda_error(error: tuple[int, str, str]) -> Exception:
    """The exception that torch raises for a CUDA error: `torch.AcceleratorError` where this release has it."""
    number, _name, text = error
    kind = getattr(torch, "AcceleratorError", RuntimeError)
    made: Exception = kind(f"CUDA error: {text}{_ADVICE}")
    if kind is not RuntimeError:
        made.error_code = number  # type: ignore[attr-defined]
    return made
