"""A workspace of 8 times 4096 KiB, 32 MiB, in a segment of its own; a small result in one of 2 MiB."""

FOURS = [[[4, 4], [4, 4]]]
# The error inside is named by the chain: leaving the capture raises another.
COLD = "raised: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"

EXPECTED = {
    "library-workspaces/cold-bug": (COLD, []),
    "library-workspaces/cold-fix": ("correct", FOURS),
    "library-workspaces/cold-fix-handle": ("correct", FOURS),
    "library-workspaces/thread-bug": (COLD, []),
    "library-workspaces/thread-fix": ("correct", FOURS),
    "library-workspaces/backward-bug": (COLD, []),
    "library-workspaces/backward-fix": ("correct", FOURS),
    "library-workspaces/size-bug": ("wrong", [32 + 2]),
    "library-workspaces/size-fix": ("correct", [2]),
    "library-workspaces/size-warm-stream": ("correct", [2]),
    "library-workspaces/neighbour-bug": ("correct", [0]),
    "library-workspaces/neighbour-fix": ("correct", [0]),
    "library-workspaces/deleted-bug": ("correct", [0]),
    "library-workspaces/deleted-fix": ("correct", [0]),
    "library-workspaces/many-bug": ("wrong", [4 * (32 + 2)]),
    "library-workspaces/many-fix": ("correct", [32 + 2]),
}

OTHERWISE = {
    # From 2.15 on the captured matmul takes a workspace from the pool, whatever was warmed up.
    "library-workspaces/size-warm-stream": ((2, 15), (9, 9), ("wrong", [32 + 2])),
    # A deleted graph drops the workspaces of its stream: not yet in 2.11, and from 2.15 on there is none to drop.
    "library-workspaces/neighbour-bug": ((2, 12), (2, 14), ("wrong", [32])),
    "library-workspaces/deleted-bug": ((2, 0), (2, 11), ("wrong", [32])),
}
