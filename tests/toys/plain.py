"""Toys that end as they should: right, wrong, raised, skipped.

Mechanism: frozen choice
"""

import unittest
import warnings

import torch


def eager():
    """One, two, three."""
    yield "warmup", 1
    yield "capture", torch.tensor([2])
    yield "replay", torch.tensor([[3, 4], [5, 6]])


def bug():
    """The last value is wrong, and addresses are kept by their distances."""
    yield "address", {"scratch": 0x7F0000000400, "y": 0x7F0000000200, "none": 0}
    yield "warmup", 1
    yield "capture", torch.tensor([2])
    yield "replay", torch.tensor([[3, 4], [5, 7]])


def fix():
    """All values are right; a capture is timed."""
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin()
    graph.capture_end()
    yield "warmup", 1
    yield "capture", torch.tensor([2])
    yield "replay", torch.tensor([[3, 4], [5, 6]])


def fix_too_short():
    """It shows one value less than its reference."""
    yield "warmup", 1
    yield "capture", 2


def numbers_eager():
    """What JSON has no token for."""
    yield "replay", [float("nan"), float("inf"), float("-inf"), 2**70, complex(1, float("nan")), None, "\ud800é"]


def numbers():
    """NaN equals NaN."""
    yield "replay", [float("nan"), float("inf"), float("-inf"), 2**70, complex(1, float("nan")), None, "\ud800é"]


def bug_raises():
    """It shows one value, then raises with a cause hidden in `__context__`."""
    yield "warmup", 1
    try:
        raise KeyError("the cause")
    except KeyError:
        raise RuntimeError("operation failed due to a previous error during capture\nsecond line")


def skipped():
    """It needs what is not there."""
    raise unittest.SkipTest("needs two GPUs")
    yield


def skipped_reference_eager():
    """The reference needs what is not there."""
    raise unittest.SkipTest("needs a compiler")
    yield


def skipped_reference():
    """It runs, but there is nothing to compare with."""
    yield "replay", 1


def lost_reference_eager():
    """A reference that raises."""
    raise ValueError("no such thing")
    yield


def lost_reference():
    """It runs, but its reference does not."""
    yield "replay", 1


def sized_eager(elements=4):
    """The sum of so many ones."""
    yield "replay", elements


def sized(elements=4, unused=1):
    """The size reaches the case and its reference."""
    yield "replay", sum(1 for _ in range(elements))


def warned_eager():
    """One."""
    yield "replay", 1


def warned():
    """Warnings of Python and of C++ are counted, those that Python hides by default as well."""
    import os

    for _ in range(3):
        warnings.warn("three times", UserWarning)
    warnings.warn("old", DeprecationWarning)
    line = "[W1130 22:31:53.123456789 CUDAGraph.cpp:%d] Warning: register_generator_state is deprecated.\nUse 0x7f00 instead. (function operator())\n"
    os.write(2, (line % 12).encode() + b"something else\n" + (line % 99).encode())
    os.write(2, b"[W CUDAGraph.cpp:7] Warning: older form (function capture_end)\n")
    yield "replay", 1


def untouched_eager():
    """No process."""
    yield "replay", []


def untouched():
    """The processes that had initialised CUDA when this one was forked."""
    yield "replay", list(torch.cuda.initialised_in)


def preloaded_eager():
    """What attempts share was imported before."""
    yield "replay", True


def preloaded():
    """It was imported before this process was forked."""
    import sys

    yield "replay", "torch._dynamo" in sys.modules
