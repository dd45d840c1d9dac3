"""Twos where a graph doubles ones; the check speaks before the replay. It came with 2.13."""

TWOS = [[2, 2, 2, 2]]
DEAD = ("raised: CUDA graph replay detected 1 dead tensor(s).", [])

EXPECTED = {
    "input-liveness/freed-bug": DEAD,
    "input-liveness/freed-fix": ("correct", TWOS),
    "input-liveness/view": ("correct", TWOS),
    "input-liveness/resized-bug": DEAD,
    "input-liveness/weight-bug": DEAD,
    "input-liveness/weight-fix": ("correct", TWOS),
    "input-liveness/rebound-bug": ("wrong", TWOS),
    "input-liveness/rebound-fix": ("correct", [[6, 6, 6, 6]]),
    "input-liveness/pinned-copy-bug": DEAD,
    "input-liveness/pinned-to": ("correct", TWOS),
    "input-liveness/chained-bug": DEAD,
    "input-liveness/chained-fix": ("correct", TWOS),
}

OTHERWISE = dict.fromkeys(EXPECTED, ((2, 0), (2, 12), ("skipped", None)))
