"""Seeds around a graph: what a replay draws, and what a seed does before, in and after a capture.

A graph holds no random numbers. It holds how far into its own numbers each kernel starts; seed and starting point are the
generator's, written to the device before each replay, which then moves the generator on by all that the graph draws. So
graph and eager code draw from one sequence. A seed that Python sets while it captures is in no graph.

Mechanism: frozen choice
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import random

import torch

SEED = 7
REPLAYS = 4


def _draw(generator=None):
    return torch.rand(4, device="cuda", generator=generator)


def _scaled_by_python():
    return torch.ones(1, device="cuda") * random.random()


def _capture(run=_draw):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run()
    return graph, y


def _count_different(draw):
    """Call `draw()` four times and yield, after each, how many different results there have been."""
    seen = set()
    for _ in range(REPLAYS):
        seen.add(tuple(draw().tolist()))
        yield "replay", len(seen)


def _replayed(graph, y):
    graph.replay()
    return y


def eager():
    """The first four draws after a seed."""
    torch.manual_seed(SEED)
    for _ in range(REPLAYS):
        yield "replay", _draw()


def seeded_replays():
    """A seed set after the capture gives replays the numbers of eager code: a graph asks for it at each replay."""
    graph, y = _capture()
    torch.manual_seed(SEED)
    for _ in range(REPLAYS):
        graph.replay()
        yield "replay", y


def eager_between_replays():
    """Eager draws and replays in turn take their numbers from one sequence, and none is drawn twice."""
    graph, y = _capture()
    torch.manual_seed(SEED)
    for i in range(REPLAYS):
        yield "replay", _replayed(graph, y) if i % 2 else _draw()


def two_graphs():
    """Two graphs that are replayed in turn take their numbers from one sequence."""
    pairs = [_capture(), _capture()]
    torch.manual_seed(SEED)
    for i in range(REPLAYS):
        yield "replay", _replayed(*pairs[i % 2])


def capture_between():
    """A capture draws nothing: the numbers before and after it are neighbours."""
    torch.manual_seed(SEED)
    yield "replay", _draw()
    _capture()
    for _ in range(REPLAYS - 1):
        yield "replay", _draw()


def warmup_bug():
    """A seed at the top of the script gives the same numbers with a graph as without.

    Seen instead: those that eager code draws from its fourth step on, since three steps of warm-up drew before.
    """
    torch.manual_seed(SEED)
    for _ in range(3):
        _draw()
    graph, y = _capture()
    for _ in range(REPLAYS):
        graph.replay()
        yield "replay", y


def fix_restore_state():
    """The state saved before the warm-up and restored after it makes the warm-up leave no trace."""
    torch.manual_seed(SEED)
    state = torch.cuda.get_rng_state()
    for _ in range(3):
        _draw()
    graph, y = _capture()
    torch.cuda.set_rng_state(state)
    for _ in range(REPLAYS):
        graph.replay()
        yield "replay", y


def _seeded_draw():
    torch.manual_seed(SEED)
    return _draw()


def seed_inside_eager():
    """A step that begins with its seed draws the same numbers each time: 1, 1, 1, 1 different results."""
    torch.manual_seed(SEED)
    yield from _count_different(_seeded_draw)


def seed_inside_bug():
    """A captured step that begins with its seed draws the same numbers each time, as in eager mode.

    Seen instead: 1, 2, 3, 4. In a capture the seed that the generator has already is accepted and does nothing,
    https://github.com/pytorch/pytorch/pull/162505; replays move on as ever.
    """
    torch.manual_seed(SEED)
    graph, y = _capture(_seeded_draw)
    yield from _count_different(lambda: _replayed(graph, y))


def seed_inside_fix():
    """A seed set before each replay makes each draw the same numbers: 1, 1, 1, 1."""
    graph, y = _capture()

    def step():
        torch.manual_seed(SEED)
        return _replayed(graph, y)

    yield from _count_different(step)


def seed_inside_other_bug():
    """A captured step can begin with a seed that the generator does not have yet.

    Seen instead: a `RuntimeError`; a graph cannot change a seed, which the generator hands to each replay.
    """
    torch.manual_seed(SEED + 1)
    graph, y = _capture(_seeded_draw)
    yield from _count_different(lambda: _replayed(graph, y))


def python_random_eager():
    """A factor from Python's own generator is another at each step: 1, 2, 3, 4 different results."""
    yield from _count_different(_scaled_by_python)


def python_random_bug():
    """A captured step draws a factor from Python's own generator at each replay.

    Seen instead: 1, 1, 1, 1. Python drew once, at capture, and the kernel has the number.
    """
    graph, y = _capture(_scaled_by_python)
    yield from _count_different(lambda: _replayed(graph, y))


def python_random_fix():
    """A factor drawn on the GPU is another at each replay."""
    graph, y = _capture(lambda: torch.ones(1, device="cuda") * torch.rand(1, device="cuda"))
    yield from _count_different(lambda: _replayed(graph, y))


def _kept_but_without_gradient(dropped, gradient):
    return ((dropped != 0) != (gradient != 0)).sum()


def dropout_backward_eager():
    """Dropout keeps an element if and only if its gradient passes: 0 differ."""
    x = torch.ones(64, device="cuda", requires_grad=True)
    for _ in range(2):
        y = torch.nn.functional.dropout(x, p=0.5)
        yield "replay", _kept_but_without_gradient(y, torch.autograd.grad(y.sum(), x)[0])


def dropout_backward():
    """A captured backward pass uses the mask of the forward pass of its own replay: 0 differ."""
    x = torch.ones(64, device="cuda", requires_grad=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.nn.functional.dropout(x, p=0.5)
        (gradient,) = torch.autograd.grad(y.sum(), x)
    for _ in range(2):
        graph.replay()
        yield "replay", _kept_but_without_gradient(y, gradient)
