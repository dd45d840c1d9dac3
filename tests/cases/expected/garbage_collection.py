"""When the collector runs and what it destroys, worked out from torch/cuda/graphs.py and CUDA's rule for calls in a capture.

A graph that is destroyed in a capture of the mode "global" loses the capture; the error at its end has no other as context,
since a destructor only warns.
"""

DOUBLED = ("correct", [2, 4, 6])
LOST = ("raised: AcceleratorError: CUDA error: operation failed due to a previous error during capture", [])
FREE = ("correct", [0])

EXPECTED = {
    "garbage-collection/cycle-bug": LOST,
    "garbage-collection/automatic-bug": LOST,
    "garbage-collection/automatic-fix-collect": DOUBLED,
    "garbage-collection/automatic-fix-disable": DOUBLED,
    "garbage-collection/automatic-fix-freeze": DOUBLED,
    "garbage-collection/automatic-fix-force": DOUBLED,
    "garbage-collection/evict-bug": LOST,
    "garbage-collection/evict-fix": DOUBLED,
    "garbage-collection/evict-workaround-relaxed": DOUBLED,
    "garbage-collection/tensor-in-capture": DOUBLED,
    "garbage-collection/memory-bug": ("wrong", [16777216]),  # One tensor of 16 MiB.
    "garbage-collection/memory-fix-collect": FREE,
    "garbage-collection/memory-fix-force": FREE,
    "garbage-collection/callable-bug": DOUBLED,
    "garbage-collection/callable-fix": DOUBLED,
    # The graphs of 2.15 go by reference count; the tensors that the class's methods close over do not.
    "garbage-collection/callable-memory-bug": ("wrong", [False]),
    "garbage-collection/callable-memory-fix": ("correct", [True]),
}

OTHERWISE = {
    # Pull request 195397 came with 2.15.
    "garbage-collection/callable-bug": ((2, 0), (2, 14), LOST),
}
