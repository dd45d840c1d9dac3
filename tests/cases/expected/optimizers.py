"""The group `optimizers`: SGD and Adagrad by hand; Adam's values are its formula's, and only their agreement is of interest."""

from math import sqrt

NOT_CAPTURABLE = "raised: Attempting CUDA graph capture of step() for an instance of Adam but param_groups' capturable is False."

EXPECTED = {
    "optimizers/adam-bug": (NOT_CAPTURABLE, []),
    "optimizers/first-step-bug": ("wrong", None),
    "optimizers/fix-capturable": ("correct", None),
    "optimizers/fused": ("correct", None),
    "optimizers/momentum-bug": ("wrong", [-1, -2, -3, -4]),
    "optimizers/momentum-fix": ("correct", [-1, -2.5, -4.25, -6.125]),
    "optimizers/scheduler-bug": ("wrong", [-1, -2, -3, -4]),
    "optimizers/scheduler-fix": ("correct", [-1, -1.5, -1.75, -1.875]),
    "optimizers/scheduler-unfused-bug": ("raised: operation not permitted when stream is capturing", []),
    "optimizers/adagrad-bug": ("wrong", [-1, round(-1 - 1 / sqrt(2), 3), round(-1 - 1 / sqrt(2) - 1 / sqrt(3), 3)]),
    "optimizers/load-state-bug": (NOT_CAPTURABLE, None),
    "optimizers/load-state-fix": ("correct", None),
    "optimizers/hook-bug": ("wrong", [1, 1, 1]),
}
