"""MiB worked out from the allocator's three segment sizes; tensors of 16 MiB have a segment each."""

EXPECTED = {
    "memory-numbers/segment-sizes": ("correct", [2, 20, 20, 10, 12]),
    "memory-numbers/small-outputs-bug": ("wrong", [10 * 2]),
    "memory-numbers/small-outputs-fix": ("correct", [2]),
    "memory-numbers/intermediates": ("correct", [2 * 16]),
    "memory-numbers/intermediates-bug": ("wrong", [4 * 16]),
    "memory-numbers/bucket-order-bug": ("wrong", [12 + 24 + 48 + 2]),
    "memory-numbers/bucket-order-fix": ("correct", [48 + 2]),
    "memory-numbers/dropped-output": ("correct", [16]),
    "memory-numbers/peak-bug": ("wrong", [0]),
    "memory-numbers/peak-fix": ("correct", [2 * 16]),
    "memory-numbers/cached-warmup-bug": ("wrong", [2 * 16]),
    "memory-numbers/cached-warmup-fix": ("correct", [16]),
    "memory-numbers/record-stream-bug": ("wrong", [3 * 16]),
    "memory-numbers/record-stream-fix": ("correct", [16]),
    "memory-numbers/generator-blocks": ("correct", [0, 0]),
}

OTHERWISE = {
    # Seed and offset, a block of 512 bytes each: one pair that all graphs share, then a pair a graph, then only where numbers are drawn.
    "memory-numbers/generator-blocks": [
        ((2, 0), (2, 11), ("wrong", [1024, 0])),
        ((2, 12), (2, 13), ("wrong", [1024, 1024])),
    ],
}
