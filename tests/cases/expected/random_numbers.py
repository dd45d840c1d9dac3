"""The group `random-numbers`: graph and eager code draw from one sequence, so strips agree; the numbers are the generator's."""

EXPECTED = {
    "random-numbers/seeded-replays": ("correct", None),
    "random-numbers/eager-between-replays": ("correct", None),
    "random-numbers/two-graphs": ("correct", None),
    "random-numbers/capture-between": ("correct", None),
    "random-numbers/warmup-bug": ("wrong", None),
    "random-numbers/fix-restore-state": ("correct", None),
    "random-numbers/seed-inside-bug": ("wrong", [1, 2, 3, 4]),
    "random-numbers/seed-inside-fix": ("correct", [1, 1, 1, 1]),
    "random-numbers/seed-inside-other-bug": ("raised: only if new seed is the same as the original seed", []),
    "random-numbers/python-random-bug": ("wrong", [1, 1, 1, 1]),
    "random-numbers/python-random-fix": ("correct", [1, 2, 3, 4]),
    "random-numbers/dropout-backward": ("correct", [0, 0]),
}
