"""States of generators in a capture: read, set, forked, shared.

A state is a seed and a position. In a capture the position counts from the beginning of the graph, since nobody knows yet
where a replay will begin; so a state may be read and set again within the captured code, and means nothing outside of it.
What would need a number on the host is refused.

Mechanism: frozen choice
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import torch
from torch.utils.checkpoint import checkpoint

SEED = 7


def _draw(generator=None):
    return torch.rand(4, device="cuda", generator=generator)


def _capture(run):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run()
    return graph, y


def eager():
    """Two draws after a seed."""
    torch.manual_seed(SEED)
    for _ in range(2):
        yield "replay", _draw()


def _draw_twice_from_here():
    """Two draws from one state: what checkpointing does to draw a mask again."""
    state = torch.cuda.get_rng_state()
    first = _draw()
    torch.cuda.set_rng_state(state)
    return first, _draw()


def rewind_eager():
    """Each step draws its numbers and then the same again; the next step goes on from there."""
    torch.manual_seed(SEED)
    for _ in range(2):
        yield "replay", list(_draw_twice_from_here())


def rewind_inside():
    """A captured step can go back to a state that it read itself, and draws the same numbers again.

    Refused by older releases, which let nobody read a state in a capture: https://github.com/pytorch/pytorch/issues/162504
    """
    torch.manual_seed(SEED)
    graph, pair = _capture(_draw_twice_from_here)
    for _ in range(2):
        graph.replay()
        yield "replay", list(pair)


def state_eager():
    """A draw from the state that was read before another draw repeats it."""
    for _ in range(2):
        state = torch.cuda.get_rng_state()
        first = _draw()
        torch.cuda.set_rng_state(state)
        yield "replay", torch.equal(first, _draw())


def state_read_inside_bug():
    """A state that the captured step read brings back what its replay drew.

    Seen instead: other numbers. In a capture the state counts from the beginning of the graph, wherever a replay starts.
    """
    _draw()
    state = []
    graph, y = _capture(lambda: state.append(torch.cuda.get_rng_state()) or _draw())
    for _ in range(2):
        graph.replay()
        torch.cuda.set_rng_state(state[0])
        yield "replay", torch.equal(y, _draw())
        _draw()


def state_read_before_replay_fix():
    """A state read just before a replay brings back what the replay drew."""
    graph, y = _capture(_draw)
    for _ in range(2):
        state = torch.cuda.get_rng_state()
        graph.replay()
        torch.cuda.set_rng_state(state)
        yield "replay", torch.equal(y, _draw())


def _fork():
    """A draw apart, as evaluation code makes it, and one after it."""
    with torch.random.fork_rng(devices=[torch.cuda.current_device()]):
        apart = _draw()
    return apart, _draw()


def fork_eager():
    """Whatever was drawn apart, the draw after it is the one that would have come: the same numbers."""
    torch.manual_seed(SEED)
    for _ in range(2):
        yield "replay", list(_fork())


def fork_inside():
    """`torch.random.fork_rng` works in a captured step as it does outside."""
    torch.manual_seed(SEED)
    graph, pair = _capture(_fork)
    for _ in range(2):
        graph.replay()
        yield "replay", list(pair)


def _only_apart():
    with torch.random.fork_rng(devices=[torch.cuda.current_device()]):
        return _draw()


def fork_alone_eager():
    """Draws apart leave the generator where it was, and repeat each other."""
    torch.manual_seed(SEED)
    _draw()
    for _ in range(2):
        yield "replay", _only_apart()


def fork_alone_bug():
    """A captured step that draws within a fork alone draws the numbers of eager mode.

    Seen instead: others. A replay writes seed and position for its kernels only if the graph moves the generator on,
    https://github.com/pytorch/pytorch/pull/143777, and a fork leaves it where it was. Up to 2.11 the kernel finds what the
    capture wrote, the position 0; from 2.12 on nobody has written, and it reads what lies there: on an H200 two zeros, so the first numbers of
    seed 0.
    """
    torch.manual_seed(SEED)
    _draw()
    graph, y = _capture(_only_apart)
    for _ in range(2):
        graph.replay()
        yield "replay", y


def generator_inside_bug():
    """A captured step can make a generator of its own.

    Seen instead: a `RuntimeError`. A new generator gets a seed on the host, and the graph has no way to begin it anew.
    """
    graph, y = _capture(lambda: _draw(torch.Generator(device="cuda").manual_seed(SEED)))
    for _ in range(2):
        graph.replay()
        yield "replay", y


def offset_inside_bug():
    """A captured step can ask how far a generator has come.

    Seen instead: an `IndexError` before any capture. The tuple of default generators is empty until CUDA is initialised, and
    Python reads the name before it calls `current_device()`, which does that. Two lines in place of one would come as far as
    the capture, where `get_offset` is refused.
    """
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    graph, y = _capture(lambda: (generator.get_offset(), _draw())[1])
    for _ in range(2):
        graph.replay()
        yield "replay", y


def two_states_eager():
    """Draws from two generators in turn."""
    generators = [torch.Generator(device="cuda").manual_seed(seed) for seed in (1, 2)]
    for _ in range(2):
        yield "replay", [_draw(generator) for generator in generators]


def two_states():
    """One generator can change between two states in a captured step, and each state goes on by itself.

    That is how pipelines keep a state for each tensor-parallel rank. Before 2.14 each state had to be registered with the
    graph; from then on `register_generator_state` does nothing and warns.
    """
    generator, other = torch.Generator(device="cuda").manual_seed(1), torch.Generator(device="cuda").manual_seed(2)
    own = generator.graphsafe_get_state()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(own)
    graph.register_generator_state(other)
    with torch.cuda.graph(graph):
        first = _draw(generator)
        generator.graphsafe_set_state(other)
        second = _draw(generator)
        generator.graphsafe_set_state(own)
    for _ in range(2):
        graph.replay()
        yield "replay", [first, second]


def _checkpointed(x):
    y = checkpoint(lambda x: torch.nn.functional.dropout(x * 1, p=0.5) * x, x, use_reentrant=False)
    return y, torch.autograd.grad(y.sum(), x)[0]


def checkpoint_eager():
    """Dropout of ones that is computed again for the backward pass has the same mask: the gradient is twice the output."""
    x = torch.ones(64, device="cuda", requires_grad=True)
    for _ in range(2):
        y, gradient = _checkpointed(x)
        yield "replay", (gradient != 2 * y).sum()


def checkpoint_inside():
    """A captured checkpoint draws the mask of its replay again: the gradient is twice the output, 0 differ.

    It reads and sets states in the capture, which older releases refused:
    https://github.com/pytorch/pytorch/issues/162504
    """
    x = torch.ones(64, device="cuda", requires_grad=True)
    graph, (y, gradient) = _capture(lambda: _checkpointed(x))
    for _ in range(2):
        graph.replay()
        yield "replay", (gradient != 2 * y).sum()


def graphed_checkpoint_eager():
    """In eager mode the gradient of the checkpointed dropout is twice its output: 0, 0 runs in which any differs."""
    yield from (("replay", count) for count in (0, 0))


def graphed_checkpoint_bug():
    """A checkpointed dropout that `make_graphed_callables` took apart into two graphs uses one mask in both.

    Seen instead: from 2.12 on another mask in the backward pass, 1, 1. The backward graph draws from a state that it sets and
    takes back, and leaves the generator where it was, so no replay writes a position for it. Up to 2.11 it finds that of the
    forward graph, since all graphs of a generator share one place; now each has its own, which nobody writes:
    https://github.com/pytorch/pytorch/pull/176752. An H200 shows both.
    """
    x = torch.ones(64, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(
        lambda x: checkpoint(lambda x: torch.nn.functional.dropout(x * 1, p=0.5) * x, x, use_reentrant=False), (x,)
    )
    for _ in range(2):
        y = graphed(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        yield "replay", int((gradient != 2 * y).any())
