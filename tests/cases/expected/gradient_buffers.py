"""The group `gradient-buffers`: a weight that starts at 0, a rate of 1, a gradient of 1."""

TRAINED = [-1, -2, -3]

EXPECTED = {
    "gradient-buffers/zero-grad-bug": ("wrong", [0, 0, 0]),
    "gradient-buffers/fix-no-zero-grad": ("correct", TRAINED),
    "gradient-buffers/left-by-warmup-bug": ("wrong", [-2, -5, -9]),
    "gradient-buffers/fix-drop-before-capture": ("correct", TRAINED),
    "gradient-buffers/fix-zero-in-place": ("correct", TRAINED),
    "gradient-buffers/other-gradient-bug": ("wrong", [-1, -2, -3]),
    "gradient-buffers/other-gradient-fix": ("correct", [-1, -3, -6]),
    "gradient-buffers/clip": ("correct", None),  # Norms of 5 and 10, and gradients that end in rounding.
    "gradient-buffers/clip-nonfinite-bug": ("raised: operation not permitted when stream is capturing", []),
    "gradient-buffers/load-by-assignment-bug": ("wrong", [1, 1]),
    "gradient-buffers/load-in-place-fix": ("correct", [1, 2]),
}
