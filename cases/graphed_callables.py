"""`make_graphed_callables`: what the graphed callable keeps of the sample call, and what it hands out.

The callable is a pair of graphs in an autograd function. Inputs are copied into the sample's tensors; outputs and gradients
are the graphs' own tensors, the same at each call. Whatever the sample call decided, by its shapes, its `requires_grad`,
its modes, holds for every call.

Mechanism: frozen choice
Source: https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html
"""

import torch


def _ones(*shape, **options):
    return torch.ones(shape or (1,), device="cuda", **options)


def _scale():
    """A layer that multiplies by 2."""
    layer = torch.nn.Linear(1, 1, bias=False).cuda()
    torch.nn.init.constant_(layer.weight, 2.0)
    return layer


def _forward_and_backward(layer, number):
    x = torch.full((1,), number, device="cuda", requires_grad=True)
    y = layer(x)
    y.backward()
    return {"y": y.item(), "x": x.grad.item(), "weight": layer.weight.grad.item()}


def eager():
    """Output, gradient of the input, gradient of the weight: 2, 2, 1 and then 6, 2, 3."""
    layer = _scale()
    for number in (1.0, 3.0):
        layer.zero_grad()
        yield "replay", _forward_and_backward(layer, number)


def gradients():
    """Output and gradients of a graphed layer are those of eager mode."""
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(requires_grad=True),))
    for number in (1.0, 3.0):
        layer.zero_grad()
        yield "replay", _forward_and_backward(layer, number)


def outputs_eager():
    """Three outputs kept in a list: 2, 4, 6."""
    layer = _scale()
    yield from (("replay", y) for y in [layer(_ones() * number) for number in (1, 2, 3)])


def outputs_bug():
    """Outputs of several calls can be kept.

    Seen instead: 6, 6, 6. Each call returns the graph's own output, which the next call writes to.
    """
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    yield from (("replay", y) for y in [layer(_ones() * number) for number in (1, 2, 3)])


def outputs_fix():
    """Copies of the outputs can be kept."""
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    yield from (("replay", y) for y in [layer(_ones() * number).clone() for number in (1, 2, 3)])


def _accumulate(layer):
    """Gradients of 1, 2 and 4 that add up in the weight, as in training with small batches."""
    for number in (1.0, 2.0, 4.0):
        layer(_ones() * number).sum().backward()
        yield "replay", layer.weight.grad


def accumulation_eager():
    """Gradients of 1, 2, 4 add up to 1, 3, 7."""
    yield from _accumulate(_scale())


def accumulation_bug():
    """Gradients of several backward passes add up, as in eager mode.

    Seen instead: 1, 4, 8. The first gradient is the graph's own buffer. Each backward pass writes over it, and then adds it
    to itself: twice the last. https://github.com/pytorch/pytorch/issues/181723
    """
    yield from _accumulate(torch.cuda.make_graphed_callables(_scale(), (_ones(),)))


def accumulation_fix():
    """A gradient of 0 that is there before the first backward pass is added to, and stays apart from the graph's buffer."""
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    layer.weight.grad = torch.zeros_like(layer.weight)
    yield from _accumulate(layer)


class _Dropped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(x) * 1


def eval_eager():
    """Without dropout no element is 0: 0."""
    yield "replay", int((_ones(64) == 0).any())


def eval_of_a_part_bug():
    """A part of the model that is set to evaluation drops nothing any more.

    Seen instead: dropout goes on, 1. Only the graphed module's own `training` is looked at before a replay.
    """
    model = torch.cuda.make_graphed_callables(_Dropped().cuda(), (_ones(64),))
    model.dropout.eval()
    yield "replay", int((model(_ones(64)) == 0).any())


def eval_of_the_whole():
    """The graphed module set to evaluation runs its own forward in eager mode, without dropout and without a graph."""
    model = torch.cuda.make_graphed_callables(_Dropped().cuda(), (_ones(64),))
    model.eval()
    yield "replay", int((model(_ones(64)) == 0).any())


def shape_eager():
    """One row gives one row: [1, 2]."""
    yield "replay", list((_ones(1, 2) * 2).shape)


def shape_bug():
    """A call with another number of rows works or raises.

    Seen instead: four rows. One row can be broadcast to the four of the sample, and so it is.
    """
    double = torch.cuda.make_graphed_callables(lambda x: x * 2, (_ones(4, 2),))
    yield "replay", list(double(_ones(1, 2)).shape)


def shape_more_bug():
    """A call with more rows than the sample works.

    Seen instead: a `RuntimeError` of the copy into the sample's input.
    """
    double = torch.cuda.make_graphed_callables(lambda x: x * 2, (_ones(4, 2),))
    yield "replay", list(double(_ones(5, 2)).shape)


def input_gradient_eager():
    """An input that requires a gradient gets it: 2."""
    x = _ones(requires_grad=True)
    _scale()(x).backward()
    yield "replay", x.grad


def input_gradient_bug():
    """An input that requires a gradient gets it, whatever the sample was.

    Seen instead: no gradient, and no word. The sample required none, so the backward graph computes none.
    """
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    x = _ones(requires_grad=True)
    layer(x).backward()
    yield "replay", "none" if x.grad is None else x.grad


def input_gradient_fix():
    """With a sample that requires a gradient the input gets its own."""
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(requires_grad=True),))
    x = _ones(requires_grad=True)
    layer(x).backward()
    yield "replay", x.grad


def _dtype(layer):
    with torch.autocast("cuda", dtype=torch.float16):
        return str(layer(_ones()).dtype)


def autocast_eager():
    """Under autocast a linear layer gives float16."""
    yield "replay", _dtype(_scale())


def autocast_after_bug():
    """A graphed layer that is called under autocast gives float16, as in eager mode.

    Seen instead: float32. Autocast chooses kernels when they are recorded, and the graph was recorded without it.
    """
    yield "replay", _dtype(torch.cuda.make_graphed_callables(_scale(), (_ones(),)))


def autocast_fix():
    """A layer that was graphed under autocast, with its cache off, gives float16, also when called outside of it."""
    with torch.autocast("cuda", dtype=torch.float16, cache_enabled=False):
        layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    yield "replay", str(layer(_ones()).dtype)
