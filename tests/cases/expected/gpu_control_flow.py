"""The group `gpu-control-flow`: branches from 2.12 on, loops from 2.14 on, and the operators in Python before or without."""

CHOSEN = [2, 10, 2]
WAITED = "raised: operation not permitted when stream is capturing"
TOO_OLD = ((2, 0), (2, 11), ("skipped: needs conditional nodes in graphs", None))

EXPECTED = {
    "gpu-control-flow/cond-bug": (WAITED, []),
    "gpu-control-flow/fix-mode": ("correct", CHOSEN),
    "gpu-control-flow/python-condition-bug": ("wrong", [2, 2, 2]),
    "gpu-control-flow/cpu-condition-bug": ("raised: Conditions must be on a cuda device to use conditional node in cuda graphs", []),
    "gpu-control-flow/nested": ("correct", [2, 10, 11, 100]),
    "gpu-control-flow/taken": ("correct", [1, 1, 2]),
    "gpu-control-flow/random-bug": ("raised: RNG within data-dependent conditional nodes is not supported yet.", []),
    "gpu-control-flow/while-bug": (WAITED, []),
    "gpu-control-flow/while-fix": ("correct", [1, 2**3, 2**5]),
}

OTHERWISE = {
    "gpu-control-flow/fix-mode": TOO_OLD,
    "gpu-control-flow/cpu-condition-bug": TOO_OLD,
    "gpu-control-flow/nested": TOO_OLD,
    "gpu-control-flow/taken": TOO_OLD,
    "gpu-control-flow/random-bug": [TOO_OLD, ((2, 12), (2, 13), ("raised: RNG op during graph capture but generator is not registered", []))],
    "gpu-control-flow/while-fix": [TOO_OLD, ((2, 12), (2, 13), ("skipped: needs loops in graphs", None))],
}
