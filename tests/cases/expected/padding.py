"""Padding and buckets of eight: 1..6, then 7 and 8, then -3, -2, -1, behind which lies padding or what was there before."""

EXPECTED = {
    # After the first batch the buffer is 1 2 3 4 5 6 0 0, after the second 7 8 3 4 5 6 0 0, after the third -3 -2 -1 4 5 6 0 0.
    "padding/stale-tail-bug": ("wrong", [21, 33, 9]),
    "padding/stale-tail-fix-clear": ("correct", [21, 15, -6]),
    "padding/stale-tail-fix-mask": ("correct", [21, 15, -6]),
    "padding/stale-tail-bug-python-length": ("wrong", [21, 33, 9]),
    "padding/mean-bug": ("wrong", [21 / 8, 15 / 8, -6 / 8]),
    "padding/mean-fix": ("correct", [3.5, 7.5, -2]),
    "padding/maximum-bug": ("wrong", [6, 8, 0]),
    "padding/maximum-fix": ("correct", [6, 8, -1]),
    # (e^-3 + e^-2 + e^-1) / (that + 5) is 0.0996; the zeros take the rest.
    "padding/softmax-bug": ("wrong", [100, 100, 10]),
    "padding/softmax-fix": ("correct", [100, 100, 100]),
    "padding/broadcast-bug": ("wrong", [40]),
    "padding/broadcast-fix": ("correct", [5]),
    "padding/oversize-bug": ("raised: The size of tensor a (8) must match the size of tensor b (9)", []),
    "padding/oversize-fix": ("correct", [9]),
    "padding/scatter-bug": ("wrong", [[20, 21, 0, 0]]),
    "padding/scatter-fix": ("correct", [[20, 21, 12, 13]]),
    # The large bucket's u = 2(x+1) lies where the small one's output does: 6 for x = 2.
    "padding/kept-output-bug": ("wrong", [[6, 6], [4] * 8]),
    "padding/kept-output-fix": ("correct", [[2, 2], [4] * 8]),
}
