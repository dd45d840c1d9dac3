"""What a failed capture leaves behind, worked out from torch's sources and from the pull requests that changed them."""

COUNTED = ("correct", [10, 110, 1110])
SAME = ("correct", [True])

EXPECTED = {
    "failed-capture/partial-bug": ("wrong", [1, 2, 3]),
    "failed-capture/partial-fix": COUNTED,
    # From 2.14 on replay() is Python that calls instantiate() first: pull request 187740.
    "failed-capture/replay-bug": ("raised: RuntimeError: capture_end() must have been called before calling instantiate", []),
    "failed-capture/retry-fix": COUNTED,
    "failed-capture/shared-pool-bug": COUNTED,
    "failed-capture/shared-pool-fix": COUNTED,
    "failed-capture/caught-bug": ("raised: AcceleratorError: CUDA error: operation failed due to a previous error during capture", []),
    "failed-capture/caught-copy": COUNTED,
    "failed-capture/earlier-graph": COUNTED,
    "failed-capture/stream-bug": SAME,
    "failed-capture/stream-fix": SAME,
    "failed-capture/unwritten-bug": ("wrong", [5]),
    "failed-capture/unwritten-fix": ("correct", [2]),
    "failed-capture/memory-bug": ("correct", [0]),
    "failed-capture/memory-control": ("correct", [0]),
    "failed-capture/random-bug": SAME,
    "failed-capture/random-workaround": SAME,
}

OTHERWISE = {
    "failed-capture/replay-bug": (
        (2, 0), (2, 13), ("raised: RuntimeError: Called CUDAGraph::replay without a preceding successful capture", []),
    ),
    # Pull request 180395 came with 2.13.
    "failed-capture/shared-pool-bug": ((2, 0), (2, 12), ("raised: RuntimeError: beginAllocateToPool: already recording to mempool_id", [])),
    # The stream is set back in a `finally` from 2.15 on.
    "failed-capture/stream-bug": ((2, 0), (2, 14), ("wrong", [False])),
    # Pull request 190348 came with 2.14. One segment of 64 MiB.
    "failed-capture/memory-bug": ((2, 0), (2, 13), ("wrong", [67108864])),
    # Pull request 176752 came with 2.12.
    "failed-capture/random-bug": (
        (2, 0), (2, 11), ("raised: RuntimeError: Offset increment outside graph capture encountered unexpectedly", []),
    ),
}  # fmt: skip
