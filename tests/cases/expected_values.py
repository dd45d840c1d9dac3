"""What each case comes to, worked out by hand from how CUDA graphs work and from what GPUs showed, for torch 2.11 to 2.15.

An entry is an outcome (`correct`, `wrong`, `skipped`, or `raised: part of the text`) and the values that the case shows, or
None where they are the allocator's or the clock's choice. Nothing here was copied from a run of the CPU model.
"""

from __future__ import annotations

from typing import Any

Expected = tuple[str, "list[Any] | None"]

ALTERNATING = [2, 0, 2, 0, 2, 0, 2, 0]
COUNTED = [{"y": 1 if n % 2 else -1, "state": n} for n in range(1, 9)]
HALVED_AND_DOUBLED = [{"weight": 2.0**-n, "scale": 2.0 ** (n + 1)} for n in range(1, 5)]
DOUBLED_BATCHES = [[2, 4, 6], [22, 24, 26, 28, 30, 32, 34, 36], [42, 44, 46, 48, 50]]
REFUSED = "raised: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned"
LIBRARY = [2, 4, 6, 10, 12, 14]
PARALLEL = [[4, 4], [10, 10], [18, 18]]

EXPECTED: dict[str, Expected] = {
    "control-flow/bug": ("wrong", [2, 0, 2, 0, 0, 0, 0, 0]),
    "control-flow/fix-where": ("correct", ALTERNATING),
    "control-flow/fix-kernel": ("skipped", None),  # The model runs no CUDA kernel.
    "control-flow/fix-multi-graph": ("correct", ALTERNATING),
    "control-flow/fix-partial": ("correct", ALTERNATING),
    "capture-aware/bug": ("wrong", [0, 1, 2, -3, -4, -5]),
    "capture-aware/fix": ("correct", [0, 1, 2, 3, 4, 5]),
    "capture-aware/fix-sleep": ("correct", [0, 1, 2, 3, 4, 5]),
    "dynamic-scalar/bug": ("wrong", [1, 2, 4, 8, 8, 8]),
    "dynamic-scalar/fix": ("correct", [1, 2, 4, 8, 16, 32]),
    "hidden-scalar/lr-bug": ("wrong", [-1, -2, -3, -4]),
    "hidden-scalar/lr-fix": ("correct", [-1, -1.5, -1.75, -1.875]),
    "hidden-scalar/step-counter-bug": ("wrong", [3, 3, 3, 3]),
    "hidden-scalar/step-counter-fix": ("correct", [3, 6, 9, 12]),
    "hidden-scalar/grad-scaler-bug": ("raised: operation not permitted when stream is capturing", []),
    "hidden-scalar/grad-scaler-fix": ("correct", HALVED_AND_DOUBLED),
    "rng/default-auto": ("correct", [1, 2, 3, 4, 5]),
    "rng/default-registered": ("correct", [1, 2, 3, 4, 5]),
    "rng/custom-unregistered": ("correct", [1, 2, 3, 4, 5]),
    "rng/custom-registered": ("correct", [1, 2, 3, 4, 5]),
    "dynamic-shape/bug": ("wrong", [10, 10, 10, 10]),
    "dynamic-shape/fix-pad": ("correct", DOUBLED_BATCHES),
    "dynamic-shape/fix-bucket": ("correct", DOUBLED_BATCHES),
    "host-state/bug": ("wrong", COUNTED[:4] + [{"y": -1, "state": 4}] * 4),
    "host-state/fix-outside": ("correct", COUNTED),
    "host-state/fix-gpu-tensor": ("correct", COUNTED),
    "dynamic-input/bug": ("wrong", [0, 1, 1, 1, 1, 1]),
    "dynamic-input/fix": ("correct", [0, 1, 2, 3, 4, 5]),
    "autocast-cache/bug": ("wrong", [1, 1, 1]),
    "autocast-cache/fix-no-cache": ("correct", [1, 2, 3]),
    "autocast-cache/fix-inside": ("correct", [1, 2, 3]),
    "freed-cuda-input/bug": ("wrong", None),  # Twice four random numbers.
    "freed-cuda-input/fix": ("correct", [[6, 6, 6, 6]]),
    "freed-cpu-input/bug": (REFUSED, [0, 1, 2]),
    "freed-cpu-input/fix-keep-alive": (REFUSED, [0, 1, 2]),
    "freed-cpu-input/fix-gpu-tensor": (REFUSED, [0, 1, 2]),
    "freed-cpu-input/bug-pinned": ("wrong", [0, 1, 2, 3, 104, 104]),  # 105 goes to a block of its own: the first is in use.
    "freed-cpu-input/fix-pinned-keep-alive": ("correct", [0, 1, 2, 3, 3, 3]),
    "freed-cpu-input/fix-full": ("correct", [0, 1, 2, 3, 3, 3]),
    "output-reuse/bug": ("wrong", [5, 5, 5, 15]),
    "output-reuse/fix": ("correct", [1, 2, 5, 8]),
    "shared-pool/bug": ("wrong", [8, 3]),
    "shared-pool/fix-read-immediately": ("correct", [8, 4]),
    "shared-pool/fix-separate-pools": ("correct", [8, 4]),
    "shared-pool/fix-capture-order": ("correct", [8, 4]),
    "replay-order/bug": ("wrong", [6, 3, 8]),
    "replay-order/fix-capture-order": ("wrong", [6, 3, 8]),
    "replay-order/fix-documented-order": ("correct", [4, 6, 8]),
    "replay-order/fix-separate-pools": ("correct", [4, 6, 8]),
    "replay-order/fix-capture-in-replay-order": ("correct", [4, 6, 8]),
    "library-stream/bug": ("wrong", [2, 4, 6, 0, 0, 0]),  # 0: fresh memory of the pool.
    "library-stream/fix-current-stream": ("correct", LIBRARY),
    "library-stream/fix-pass-stream": ("correct", LIBRARY),
    "library-stream/fix-internal-stream": ("correct", LIBRARY),
    "module-hooks/bug": ("wrong", [1]),
    "module-hooks/workaround-top-level": ("correct", [5]),
    "pinned/bug-eager": ("wrong", [0, 9, 9, 9]),  # The first launch of the kernel that squares waits for the GPU.
    "pinned/bug-graph": ("wrong", [9, 9, 9, 9]),
    "pinned/fix-synchronize": ("correct", [0, 1, 4, 9]),
    "pinned/fix-event": ("correct", [0, 1, 4, 9]),
    "pinned/fix-cuda-input": ("correct", [0, 1, 4, 9]),
    "parallel-replay/bug": ("wrong", None),  # A matter of timing.
    "parallel-replay/fix-separate-pools": ("correct", PARALLEL),
    "parallel-replay/fix-serialize": ("correct", PARALLEL),
    "first-bad-layer/planted-bug": ("wrong", [0, 0, 2.4e-4]),
    "first-bad-layer/control": ("correct", [0, 0, 0, 0]),
}

# What some releases do otherwise: the first and the last of them, and what is true of those.
OTHERWISE: dict[str, tuple[tuple[int, int], tuple[int, int], Expected]] = {
    # In other words on 2.11 than on 2.12 and 2.13.
    "rng/custom-unregistered": ((2, 0), (2, 13), ("raised: ", [])),
    # What is given the freed block is the allocator's choice; these are the values that an H200 showed.
    "dynamic-input/bug": ((2, 12), (2, 13), ("wrong", [0, 1, 1, 3, 3, 5])),
}


def expected(name: str, release: tuple[int, int]) -> Expected:
    """Outcome and values of a case on a release, such as (2, 13)."""
    first, last, otherwise = OTHERWISE.get(name, ((0, 0), (0, 0), EXPECTED[name]))
    return otherwise if first <= release <= last else EXPECTED[name]
