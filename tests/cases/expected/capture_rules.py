"""What a capture refuses, worked out from CUDA's rules of stream capture and from the checks in torch's sources.

A wait or query of CUDA's own gives error 900 and loses the capture, so that its end gives 901, with the 900 as context. A copy
from or to pageable memory is refused by torch, and the capture ends well. What is checked before anything is captured is the
only error.
"""

SCALED = [[4] * 4, [16] * 4, [36] * 4]
LOST = ("raised: AcceleratorError: CUDA error: operation not permitted when stream is capturing", [])
REFUSED = ("raised: RuntimeError: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned", [])
RIGHT = ("correct", SCALED)

EXPECTED = {
    "capture-rules/item-bug": LOST,
    "capture-rules/item-fix": RIGHT,
    "capture-rules/relaxed-bug": LOST,
    "capture-rules/tolist-bug": REFUSED,
    "capture-rules/cpu-bug": REFUSED,
    "capture-rules/cpu-fix-pinned": RIGHT,
    "capture-rules/branch-bug": LOST,
    "capture-rules/branch-fix": RIGHT,
    "capture-rules/mask-bug": LOST,
    "capture-rules/mask-fix": RIGHT,
    # TensorCompare.cpp: where_self_out moves a CPU tensor without dimensions over; where with a Scalar makes its tensor there.
    "capture-rules/number-bug": REFUSED,
    "capture-rules/number-fix": RIGHT,
    "capture-rules/index-bug": REFUSED,
    "capture-rules/index-fix": RIGHT,
    "capture-rules/synchronize-bug": LOST,
    "capture-rules/query-bug": LOST,
    "capture-rules/query-fix": RIGHT,
    "capture-rules/nested-bug": LOST,
    "capture-rules/default-stream-bug": ("raised: RuntimeError: CUDA graphs must be captured on a non-default stream", []),
    "capture-rules/default-stream-fix": RIGHT,
    "capture-rules/other-stream-bug": ("raised: RuntimeError: Capture must end on the same stream it began on", []),
    "capture-rules/twice-bug": ("raised: RuntimeError: This CUDAGraph instance already owns a captured graph", []),
    "capture-rules/twice-fix": RIGHT,
    # From 2.14 on replay() is Python that calls instantiate() first: pull request 187740.
    "capture-rules/early-replay-bug": ("raised: RuntimeError: capture_end() must have been called before calling instantiate", []),
}

OTHERWISE = {
    "capture-rules/early-replay-bug": (
        (2, 0), (2, 13), ("raised: RuntimeError: Called CUDAGraph::replay without a preceding successful capture", []),
    ),
}  # fmt: skip
