"""Two graphs of one memory pool, replayed in another order than they were captured in.

A pool is handed out as if the graphs ran one after the other in the order of their captures. What the first graph used as
scratch is free when its capture ends, so the second graph's output may be given that very block. Replayed in that order
this saves memory and hurts nobody. In any other order the first graph's scratch lands on the second graph's output.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch


def _inputs():
    return torch.ones(1, device="cuda"), torch.full((1,), 2.0, device="cuda")


def _first(x, addresses):
    """8 for 1, by way of a scratch tensor that is gone when the function returns."""
    scratch = x * 3
    addresses["scratch of graph 1"] = scratch.data_ptr()
    return scratch + 5


def _second(x):
    """4 for 2."""
    return x**2


def _capture(share_pool):
    """Both graphs, both outputs and where they lie, and the inputs.

    The inputs are returned to be kept. Let go of, their blocks would be reused, by a clone for instance: another pitfall,
    which shows as 17 in place of 8.
    """
    inputs, addresses = _inputs(), {}
    graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graphs[0]):
        y1 = _first(inputs[0], addresses)
    with torch.cuda.graph(graphs[1], pool=graphs[0].pool() if share_pool else None):
        y2 = _second(inputs[1])
    addresses |= {"output of graph 1": y1.data_ptr(), "output of graph 2": y2.data_ptr()}
    return graphs, (y1, y2), addresses, inputs


def eager():
    """8 and 4, whichever is computed first."""
    x1, x2 = _inputs()
    yield "replay", _first(x1, {})
    yield "replay", _second(x2)


def bug():
    """Two graphs give 8 and 4 in whichever order they are replayed.

    Seen instead: 8 and 3. Graph 1, replayed last, computed its scratch of 3 where graph 2 had left its output; the addresses
    are the same.
    """
    graphs, (y1, y2), addresses, _kept = _capture(share_pool=True)
    yield "address", addresses
    graphs[1].replay()
    graphs[0].replay()
    yield "replay", y1
    yield "replay", y2


def fix_read_immediately():
    """An output that is cloned before another graph of the pool is replayed is 8, or 4, in any order."""
    graphs, (y1, y2), addresses, _kept = _capture(share_pool=True)
    yield "address", addresses
    graphs[1].replay()
    second = y2.clone()
    graphs[0].replay()
    first = y1.clone()
    yield "replay", first
    yield "replay", second


def fix_separate_pools():
    """Without `pool=` each graph has a pool of its own, and any order gives 8 and 4.

    The price is that no graph reuses what another has finished with.
    """
    graphs, (y1, y2), addresses, _kept = _capture(share_pool=False)
    yield "address", addresses
    graphs[1].replay()
    graphs[0].replay()
    yield "replay", y1
    yield "replay", y2


def fix_capture_order():
    """Replayed in the order of their captures, graphs of one pool give 8 and 4, though scratch and output share a block."""
    graphs, (y1, y2), addresses, _kept = _capture(share_pool=True)
    yield "address", addresses
    graphs[0].replay()
    graphs[1].replay()
    yield "replay", y1
    yield "replay", y2
