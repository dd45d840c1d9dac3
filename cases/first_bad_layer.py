"""How to find the layer where a graph leaves the eager run.

Make execution deterministic, seed, keep a copy of each layer's output from an eager run and from the captured one, replay,
and compare layer by layer: a replay launches the same kernels on the same data, so any difference is a real one. The first
layer that differs is where to look, and what comes after it only inherits. Here the third of four layers rounds to half
precision while it is captured, as mixed-precision code that looks at the mode may do.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import os

import torch

LAYERS = 4
PLANTED_IN = 2
THRESHOLD = 1e-5


class _Layer(torch.nn.Module):
    def __init__(self, width, planted):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.planted = planted

    def forward(self, x):
        x = torch.tanh(self.linear(x))
        if self.planted and torch.cuda.is_current_stream_capturing():
            x = x.half().float()
        return x


def _layers_and_input(width, planted_in):
    """Weights and input are drawn on the CPU, so they are the same on every machine."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # Without it, deterministic cuBLAS is refused.
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(42)
    layers = [_Layer(width, planted=i == planted_in).cuda() for i in range(LAYERS)]
    return layers, (4 * torch.randn(width, width)).cuda()


def _outputs(layers, x):
    """A clone of what each layer gives. Made in a capture, the clones hold values only after a replay."""
    outputs = []
    for layer in layers:
        x = layer(x)
        outputs.append(x.clone())
    return outputs


def _differences(expected, seen):
    """The largest difference of each layer, three digits of it, down to the first layer that is off."""
    for left, right in zip(expected, seen, strict=True):
        difference = (left - right).abs().max().item()
        yield "replay", float(f"{difference:.2e}")
        if difference > THRESHOLD:
            return


def _eager_against_graph(width, planted_in):
    layers, x = _layers_and_input(width, planted_in)
    with torch.no_grad():
        expected = _outputs(layers, x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            seen = _outputs(layers, x)
        graph.replay()
        yield from _differences(expected, seen)


def eager(width=128):
    """Two eager runs agree to the last bit in each of the four layers."""
    layers, x = _layers_and_input(width, PLANTED_IN)
    with torch.no_grad():
        yield from _differences(_outputs(layers, x), _outputs(layers, x))


def planted_bug(width=128):
    """A graph agrees with the eager run in each of the four layers.

    Seen instead: 0, 0, and about 2e-4 at the third, where the search stops. That is the size of a rounding to half precision
    of numbers just below 1, which is where the outputs of tanh lie.
    """
    yield from _eager_against_graph(width, PLANTED_IN)


def control(width=128):
    """Without the planted bug a graph agrees with the eager run to the last bit in each of the four layers."""
    yield from _eager_against_graph(width, planted_in=None)
