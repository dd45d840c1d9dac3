"""Padding and buckets of eight: 1..6, then 7 and 8, then -3, -2, -1, behind which lies padding or what was there before."""

EXPECTED = {
    # After the first batch the buffer is 1 2 3 4 5 6 0 0, after the second 7 8 3 4 5 6 0 0, after the third -3 -2 -1 4 5 6 0 0.
    "bucketing/stale-tail-bug": ("wrong", [21, 33, 9]),
    "bucketing/stale-tail-fix-clear": ("correct", [21, 15, -6]),
    "bucketing/stale-tail-fix-mask": ("correct", [21, 15, -6]),
    "bucketing/stale-tail-bug-python-length": ("wrong", [21, 33, 9]),
    "bucketing/mean-bug": ("wrong", [21 / 8, 15 / 8, -6 / 8]),
    "bucketing/mean-fix": ("correct", [3.5, 7.5, -2]),
    "bucketing/maximum-bug": ("wrong", [6, 8, 0]),
    "bucketing/maximum-fix": ("correct", [6, 8, -1]),
    # (e^-3 + e^-2 + e^-1) / (that + 5) is 0.0996; the zeros take the rest.
    "bucketing/softmax-bug": ("wrong", [100, 100, 10]),
    "bucketing/softmax-fix": ("correct", [100, 100, 100]),
    "bucketing/broadcast-bug": ("wrong", [40]),
    "bucketing/broadcast-fix": ("correct", [5]),
    "bucketing/oversize-bug": ("raised: The size of tensor a (8) must match the size of tensor b (9)", []),
    "bucketing/oversize-fix": ("correct", [9]),
    "bucketing/scatter-bug": ("wrong", [[20, 21, 0, 0]]),
    "bucketing/scatter-fix": ("correct", [[20, 21, 12, 13]]),
    # The large bucket's u = 2(x+1) lies where the small one's output does: 6 for x = 2.
    "bucketing/kept-output-bug": ("wrong", [[6, 6], [4] * 8]),
    "bucketing/kept-output-fix": ("correct", [[2, 2], [4] * 8]),
}
