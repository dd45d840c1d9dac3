"""Several functions graphed in one call share a pool, so the order in which they run counts.

`make_graphed_callables` makes a forward and a backward graph of each function and captures all six into one pool: the
forwards in order, then the backwards in reverse (F0 F1 F2 B2 B1 B0). Pipeline schedules run them in another order. The
gradients of `x**2 + 2*x + 1` then go wrong, not through lost activations (x itself is what is saved) but because `x.grad`
*is* pool memory: a backward graph hands out its static buffer, and another backward uses that block as scratch.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

# F0 runs the first function forwards, B0 backwards.
SCHEDULE = "F0 F1 B0 F2 B1 B2"  # A pipeline's.
CAPTURED_TOGETHER = "F0 F1 F2 B2 B1 B0"
CAPTURED_APART = "F0 B0 F1 B1 F2 B2"


def _function(x):
    return x**2 + 2 * x + 1


def _inputs():
    return [torch.full((1,), value, device="cuda", requires_grad=True) for value in (1.0, 2.0, 3.0)]


def _run(functions, xs, order, captured=None):
    """Run the functions in this order, and yield the gradients at its end; `captured` is the order of their captures."""
    if captured:
        yield "capture-order", captured.split()
        yield "replay-order", order.split()
    ys = {}
    for step in order.split():
        i = int(step[1:])
        if step.startswith("F"):
            ys[i] = functions[i](xs[i])
        else:
            ys[i].backward()
    yield "address", {f"gradient {i}": x.grad.data_ptr() for i, x in enumerate(xs)}
    for x in xs:
        yield "replay", x.grad


def _graphed_together(xs):
    return torch.cuda.make_graphed_callables((_function,) * 3, tuple((x,) for x in xs))


def eager():
    """Gradients 2x + 2 of 1, 2, 3 are 4, 6, 8 in any order."""
    xs = _inputs()
    yield from _run([_function] * 3, xs, SCHEDULE)


def bug():
    """Functions graphed together give the gradients 4, 6, 8 under a pipeline's schedule, as in eager mode.

    Seen instead: 6, 3, 8. The last backward to run, B2, was the first to be captured, and uses as scratch what became the
    gradient buffers of the other two.
    """
    xs = _inputs()
    yield from _run(_graphed_together(xs), xs, SCHEDULE, CAPTURED_TOGETHER)


def fix_capture_order():
    """Each backward run right after its forward gives 4, 6, 8, if that is the order of the captures.

    Seen instead: 6, 3, 8 again. It is not that order: B2 was captured first and runs last here too.
    """
    xs = _inputs()
    yield from _run(_graphed_together(xs), xs, CAPTURED_APART, CAPTURED_TOGETHER)


def fix_documented_order():
    """All forwards in order and all backwards in reverse give 4, 6, 8: that is how they were captured."""
    xs = _inputs()
    yield from _run(_graphed_together(xs), xs, CAPTURED_TOGETHER, CAPTURED_TOGETHER)


def fix_separate_pools():
    """Functions graphed in a call each have a pool each, and give 4, 6, 8 under a pipeline's schedule."""
    xs = _inputs()
    functions = [torch.cuda.make_graphed_callables(_function, (x,)) for x in xs]
    yield from _run(functions, xs, SCHEDULE, CAPTURED_APART)


def fix_capture_in_replay_order():
    """Forwards and backwards captured by hand in the schedule's own order give 4, 6, 8 from one pool."""
    _function(torch.ones(1, device="cuda", requires_grad=True)).backward()  # Warm-up, on a tensor of its own.
    xs, ys, graphs = _inputs(), {}, []
    pool = torch.cuda.graph_pool_handle()
    for step in SCHEDULE.split():
        i, graph = int(step[1:]), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            if step.startswith("F"):
                ys[i] = _function(xs[i])
            else:
                ys[i].backward(retain_graph=True)
        graphs.append(graph)
    yield "capture-order", SCHEDULE.split()
    yield "replay-order", SCHEDULE.split()
    for graph in graphs:
        graph.replay()
    yield "address", {f"gradient {i}": x.grad.data_ptr() for i, x in enumerate(xs)}
    for x in xs:
        yield "replay", x.grad
