"""Events in graphs, worked out from c10/cuda/CUDAEvent.h and from CUDA's documentation of events in captures.

An ordinary event that a capture recorded answers query and synchronize with "invalid argument", on an H200. A wait is skipped for an event that was
never recorded, so that such a graph doubles what x held a round before.
"""

TIMED = ("correct", [True, True, True])
DOUBLED = ("correct", [2, 4, 6])
CAPTURED = ("raised: AcceleratorError: CUDA error: invalid argument", [])

EXPECTED = {
    "graph-events/timing-bug": CAPTURED,
    "graph-events/timing-bug-flag": ("raised: ValueError: Both events must be created with argument 'enable_timing=True'", []),
    "graph-events/timing-fix": TIMED,
    "graph-events/timing-outside": TIMED,
    "graph-events/wait-bug": CAPTURED,
    "graph-events/wait-fix": DOUBLED,
    "graph-events/stream-wait": DOUBLED,
    "graph-events/feed-bug": ("wrong", [0, 2, 4]),
    "graph-events/feed-bug-internal": ("raised: dependency created on uncaptured work in another stream", []),
    "graph-events/feed-fix": DOUBLED,
    "graph-events/fork": DOUBLED,
    "graph-events/reuse": ("correct", [True]),
}

OTHERWISE = {
    # torch.zeros loads no kernel there, so the loop's first fill does, and waits for the spin.
    "graph-events/feed-bug": ((2, 15), (9, 9), ("wrong", [2, 2, 4])),
}
