"""Ten times 1, 2, 3 where the host is read again, ten times 1 where it was read once; MiB in powers of two."""

FOLLOWED = [[10, 10], [20, 20], [30, 30]]
FROZEN = [[10, 10]] * 3
REFUSED = "raised: Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned"

EXPECTED = {
    "host-memory/upload-bug": ("wrong", FROZEN),
    "host-memory/upload-fix": ("correct", FOLLOWED),
    "host-memory/part": ("correct", FOLLOWED),
    "host-memory/strided-bug": (REFUSED, []),
    "host-memory/strided-fix": ("correct", FOLLOWED),
    "host-memory/derived-bug": (REFUSED, []),
    "host-memory/converted-bug": (REFUSED, []),
    "host-memory/converted-fix": ("correct", FOLLOWED),
    "host-memory/scalar-bug": ("wrong", FROZEN),
    "host-memory/scalar-bug-pinned": ("wrong", FROZEN),
    "host-memory/scalar-fix": ("correct", FOLLOWED),
    "host-memory/two-uploads": ("correct", [[1, 2]] * 3),
    "host-memory/download-bug": ("wrong", [0, 0, 0]),
    "host-memory/download-fix": ("correct", [1, 4, 9]),
    "host-memory/rounding-bug": ("wrong", [4 * 8]),
    "host-memory/rounding-fix": ("correct", [16 + 4]),
}
