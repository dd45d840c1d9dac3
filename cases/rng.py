"""Random numbers in a graph: each replay draws new ones, if the graph knows the generator.

A recorded random kernel reads seed and offset through device pointers. Before each replay the graph writes the current
offset of every generator it knows, and moves that generator on by what the graph uses up. It knows the default generator
by itself; whether it must be told of any other has changed between releases. The cases count how many different results
have been seen so far, since the numbers themselves are of no interest.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/torch-cuda-graph/handling-dynamic-patterns.html
"""

import torch

REPLAYS = 5
ELEMENTS = 64  # Two masks of 64 bits are equal by chance once in 2**64 runs.


def _dropout():
    return torch.nn.functional.dropout(torch.ones(ELEMENTS, device="cuda"), p=0.5)


def _uniform(generator):
    return torch.rand(ELEMENTS, device="cuda", generator=generator)


def _custom_generator():
    return torch.Generator(device="cuda").manual_seed(1234)


def _count_different(draw):
    """Call `draw()` five times and yield, after each, how many different results there have been."""
    seen = set()
    for _ in range(REPLAYS):
        seen.add(tuple(draw().tolist()))
        yield "replay", len(seen)


def _replays(graph, output):
    """A function that replays the graph and returns its output."""

    def draw():
        graph.replay()
        return output

    return draw


def eager():
    """Five dropout masks in eager mode are all different: 1, 2, 3, 4, 5."""
    yield from _count_different(_dropout)


def default_auto():
    """Captured dropout with the default generator drops other elements at each replay.

    The default generator of the device is registered with each graph when its capture begins.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mask = _dropout()
    yield from _count_different(_replays(graph, mask))


def default_registered():
    """Registering the default generator by hand changes nothing: the masks are different."""
    torch.cuda.init()  # There are no default generators before.
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(torch.cuda.default_generators[torch.cuda.current_device()])
    with torch.cuda.graph(graph):
        mask = _dropout()
    yield from _count_different(_replays(graph, mask))


def custom_eager():
    """Five draws from a generator of one's own are all different: 1, 2, 3, 4, 5."""
    generator = _custom_generator()
    yield from _count_different(lambda: _uniform(generator))


def custom_unregistered():
    """A generator that the graph was not told of gives other numbers at each replay.

    Releases before 2.14 raise at capture instead: the generator has no state that a graph could move on. From 2.14 on
    such a state is made at the generator's first use in a capture.
    """
    generator = _custom_generator()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        numbers = _uniform(generator)
    yield from _count_different(_replays(graph, numbers))


def custom_registered():
    """A generator that was registered before the capture gives other numbers at each replay."""
    generator = _custom_generator()
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        numbers = _uniform(generator)
    yield from _count_different(_replays(graph, numbers))
