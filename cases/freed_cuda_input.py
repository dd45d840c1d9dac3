"""A graph does not keep its inputs alive.

The graph holds the address of a tensor that was made before the capture, not the tensor. When the last name that stands
for it goes, the caching allocator may hand its block to the next request of that size, and the graph reads whatever that
is. Tensors made within the capture are safe: they lie in a pool that the graph owns.

Mechanism: frozen pointer
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch


def _double(x):
    return x * 2


def eager():
    """Twice four ones is four twos."""
    yield "replay", _double(torch.ones(4, device="cuda"))


def _capture():
    """The graph, its input and its output; whether the input lives on is for the caller to decide."""
    static_input = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = _double(static_input)
    return graph, static_input, output


def bug():
    """A graph doubles the ones that it was captured with.

    Seen instead: it doubles random numbers. Its input was dropped, the next tensor of the size was given the block (the
    addresses agree), and the graph read that tensor.
    """
    torch.manual_seed(0)  # So that the wrong values are the same in each run.
    graph, static_input, output = _capture()
    address = static_input.data_ptr()
    del static_input
    other = torch.randn(4, device="cuda")
    graph.replay()
    yield "address", {"read by the graph": address, "other tensor": other.data_ptr()}
    yield "replay", output


def fix_eager():
    """Twice four threes is four sixes."""
    yield "replay", _double(torch.full((4,), 3.0, device="cuda"))


def fix():
    """A graph whose input is kept doubles what is written into it: four sixes.

    The other tensor is given another block.
    """
    torch.manual_seed(0)
    graph, static_input, output = _capture()
    other = torch.randn(4, device="cuda")
    static_input.fill_(3)
    graph.replay()
    yield "address", {"read by the graph": static_input.data_ptr(), "other tensor": other.data_ptr()}
    yield "replay", output
