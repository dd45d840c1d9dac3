"""Who holds what: twos where a graph adds one to ones, sevens where nobody may write, MiB of tensors of 16."""

TWOS, SEVENS = [[2, 2, 2, 2]], [[7, 7, 7, 7]]

EXPECTED = {
    "memory-pools/pool-id": ("correct", TWOS),
    "memory-pools/pool-object": ("correct", TWOS),
    "memory-pools/held-by-graph": ("correct", TWOS),
    "memory-pools/output-outlives-graph": ("correct", TWOS),
    "memory-pools/neighbour-deleted": ("correct", TWOS),
    "memory-pools/taken-up-again-bug": ("raised: it->second->use_count > 0 INTERNAL ASSERT FAILED", []),
    "memory-pools/taken-up-again-fix": ("correct", TWOS),
    "memory-pools/used-twice-bug": ("raised: beginAllocateToPool: already recording to mempool_id", []),
    "memory-pools/used-twice-fix": ("correct", TWOS),
    "memory-pools/visitor-bug": ("wrong", TWOS),  # The intermediate result of (1 + 1) * 2.
    "memory-pools/visitor-fix": ("correct", SEVENS),
    "memory-pools/side-pool": ("correct", [16]),
    "memory-pools/side-pool-fix": ("correct", [16]),
    "memory-pools/thread-bug": ("wrong", [16]),
    "memory-pools/thread-fix": ("correct", [32]),
    "memory-pools/deleted-graph-bug": ("wrong", [32]),
    "memory-pools/deleted-graph-fix": ("correct", [16]),
    "memory-pools/empty-cache-bug": ("wrong", [16]),
    "memory-pools/empty-cache-fix": ("correct", [0]),
}

OTHERWISE = {
    "memory-pools/pool-object": ((2, 0), (2, 13), ("raised: capture_begin(): incompatible function arguments", [])),
    "memory-pools/side-pool": ((2, 0), (2, 13), ("wrong", [0])),
}
