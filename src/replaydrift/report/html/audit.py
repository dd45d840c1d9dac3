"""Before you capture: what to look for in code of yours, each point with the cases that show what happens otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to look for: a question about your code, what to do, and patterns of the cases that show it."""

    title: str
    text: str
    patterns: tuple[str, ...]

    def cases(self, names: Iterable[str]) -> list[str]:
        """Those of the names that show this point."""
        return [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.patterns)]


POINTS: Final = (
    Point(
        "Which tensors does the region read from outside?",
        "Make each of them once, keep a reference for as long as the graph lives, and bring new values in with `copy_` or "
        "`fill_`. Assigning the name again leaves the graph with the old address, and dropping the last reference hands "
        "that address to somebody else.",
        ("dynamic-input/*", "freed-cuda-input/*", "freed-cpu-input/*", "autocast-cache/*"),
    ),
    Point(
        "Which numbers and branches does Python decide?",
        "An `if`, a Python scalar, a shape: each is a constant of the graph once it is captured. Put what changes into a "
        "tensor on the GPU, or leave the decision outside and capture a graph for each answer.",
        ("control-flow/*", "capture-aware/*", "dynamic-scalar/*", "hidden-scalar/*", "dynamic-shape/*"),
    ),
    Point(
        "What else does the code do besides computing?",
        "Counters, lists, attributes, hooks and prints act once, while the graph is captured, and never at replay. Move "
        "them out of the region, or count on the GPU.",
        ("host-state/*", "module-hooks/*"),
    ),
    Point(
        "Does every library launch on the current stream?",
        "Work on another stream is left out of the graph without a word. It must use `torch.cuda.current_stream()`, or "
        "fork from it and join it again with `wait_stream`; a profile of a replay shows what is missing.",
        ("library-stream/*",),
    ),
    Point(
        "Which outputs do you keep after the next replay?",
        "An output is one buffer, written by each replay of its graph and perhaps by others that share its pool. Take a "
        "`clone()` of what is to last.",
        ("output-reuse/*", "shared-pool/*"),
    ),
    Point(
        "In which order do graphs of one pool replay?",
        "Blocks of a shared pool were handed out in the order of capture. Replay in that order and one at a time, or give "
        "each graph a pool of its own.",
        ("shared-pool/*", "replay-order/*", "parallel-replay/*"),
    ),
    Point(
        "Who writes host buffers, and when?",
        "A replay only queues its work. Wait for an event that was recorded after the replay before you write a pinned "
        "buffer which it reads.",
        ("pinned/*",),
    ),
    Point(
        "Where do random numbers come from?",
        "A captured generator must move on with every replay, and what that takes depends on the release. Look at masks "
        "of several replays, not of one.",
        ("rng/*",),
    ),
    Point(
        "Did you compare several replays with eager mode?",
        "Most of these mistakes give the right value at the capture and the wrong one later. Compare layer by layer over "
        "several replays; the first layer that differs is where to look.",
        ("first-bad-layer/*",),
    ),
)
