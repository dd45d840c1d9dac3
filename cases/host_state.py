"""State on the host that captured code changes is changed once, at capture.

`state[0] += 1` is work of the CPU. It runs while the graph is captured and is no part of the graph; the same is true of
`list.append`, of a dictionary, of `self.step = i`. Eager code that reads the state afterwards sees it stand still. The
state is either changed outside of what is captured, or it is a tensor that a recorded kernel changes.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

# Through its parity alone, a count that stands still would look right every other time: the count is shown too.
STEPS = range(8)
CAPTURE_AT = 3


def _one():
    return torch.ones(1, device="cuda", dtype=torch.int32)


def _negate_if_even(count, y):
    """The eager code behind the graph: it looks at the count."""
    if count % 2 == 0:
        y *= -1
    return y


def _eager_then_graph(run, count, after=lambda: None):
    """Three calls of `run()` in eager mode, its capture with a first replay, then replays; each followed by eager code.

    Yields y and the count. `after()` is eager code too.
    """
    graph = torch.cuda.CUDAGraph()
    for i in STEPS:
        step = "warmup"
        if i < CAPTURE_AT:
            y = run()
        else:
            step = "replay"
            if i == CAPTURE_AT:
                step = "capture"
                with torch.cuda.graph(graph):
                    y = run()
            graph.replay()
        after()
        yield step, {"y": _negate_if_even(count(), y), "state": count()}


def eager():
    """A count goes from 1 to 8, and y changes its sign each time."""
    x, state = _one(), [0]
    for _ in STEPS:
        y = x * 1
        state[0] += 1
        yield "replay", {"y": _negate_if_even(state[0], y), "state": state[0]}


def bug():
    """A count kept by captured code goes on counting, as in eager mode.

    Seen instead: it stops at 4, which was the capture's own call, and since 4 is even y is -1 from there on.
    """
    x, state = _one(), [0]

    def run():
        y = x * 1
        state[0] += 1
        return y

    yield from _eager_then_graph(run, count=lambda: state[0])


def fix_outside():
    """A count kept by eager code after each replay goes on counting.

    It must leave the captured function altogether: Python also runs once at capture, and the count would be one ahead.
    """
    x, state = _one(), [0]

    def add_one():
        state[0] += 1

    yield from _eager_then_graph(lambda: x * 1, count=lambda: state[0], after=add_one)


def fix_gpu_tensor():
    """A count that is a tensor goes on counting, since the addition is a kernel of the graph.

    Reading it with `item()` waits for the GPU, which eager code after the replay may do.
    """
    x = _one()
    state = torch.zeros(1, device="cuda", dtype=torch.int64)

    def run():
        y = x * 1
        state.add_(1)
        return y

    yield from _eager_then_graph(run, count=state.item)
