"""The group `random-states`: in a capture a state's position counts from the beginning of the graph."""

EXPECTED = {
    "random-states/rewind-inside": ("correct", None),
    "random-states/state-read-inside-bug": ("wrong", [False, False]),
    "random-states/state-read-before-replay-fix": ("correct", [True, True]),
    "random-states/fork-inside": ("correct", None),
    "random-states/fork-alone-bug": ("wrong", None),  # Position 0 up to 2.11, then seed 0 and position 0, which nobody wrote.
    "random-states/generator-inside-bug": ("raised: Cannot construct a new CUDAGeneratorImpl during CUDA graph capture", []),
    "random-states/offset-inside-bug": ("raised: IndexError: tuple index out of range", []),
    "random-states/two-states": ("correct", None),
    "random-states/checkpoint-inside": ("correct", [0, 0]),
    "random-states/graphed-checkpoint-bug": ("wrong", [1, 1]),
}

OTHERWISE = {
    # One place for seed and position that all graphs of a generator share; the forward graph's replay has just written it.
    "random-states/graphed-checkpoint-bug": ((2, 0), (2, 11), ("correct", [0, 0])),
}
