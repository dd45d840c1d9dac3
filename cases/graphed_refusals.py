"""What `make_graphed_callables` refuses, and when: at the graphing, at the call, in the backward pass.

It is stricter than the code that it graphs. Each refusal names a thing that a pair of graphs cannot do: take a number, take
another number of gradients, be differentiated twice. All of them are loud; a release that drops one has either learnt the
thing or lost the check.

Mechanism: refused call
Source: https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html
"""

import torch
from torch.utils.checkpoint import checkpoint


def _ones(**options):
    return torch.ones(1, device="cuda", **options)


def _scale():
    """A layer that multiplies by 2."""
    layer = torch.nn.Linear(1, 1, bias=False).cuda()
    torch.nn.init.constant_(layer.weight, 2.0)
    return layer


def eager():
    """A layer that multiplies 1 by 2: 2."""
    yield "replay", _scale()(_ones())


def autocast_cache_bug():
    """A layer can be graphed under autocast.

    Seen instead: a `RuntimeError` that asks for `cache_enabled=False`; cached casts of weights would be freed before a replay.
    """
    with torch.autocast("cuda"):
        layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    yield "replay", layer(_ones())


def hooks_before_bug():
    """A layer that has hooks can be graphed.

    Seen instead: an `AssertionError`. Hooks can be set afterwards; those of the graphed layer itself fire then.
    """
    layer = _scale()
    layer.register_forward_hook(lambda *_: None)
    yield "replay", torch.cuda.make_graphed_callables(layer, (_ones(),))(_ones())


def buffer_bug():
    """A layer may have a buffer that requires a gradient.

    Seen instead: an `AssertionError`; a graphed backward pass computes gradients of inputs and parameters alone.
    """
    layer = _scale()
    layer.register_buffer("table", _ones(requires_grad=True))
    yield "replay", torch.cuda.make_graphed_callables(layer, (_ones(),))(_ones())


def number_bug():
    """A sample may hold a number beside its tensors.

    Seen instead: an `AssertionError`; only tensors can be written to before a replay.
    """
    power = torch.cuda.make_graphed_callables(lambda x, exponent: x**exponent * 2, (_ones(), 2))
    yield "replay", power(_ones(), 2)


def fix_number_closed_over():
    """A number that the function closes over is frozen, which is what it is meant to be here: 2."""
    exponent = 2
    power = torch.cuda.make_graphed_callables(lambda x: x**exponent * 2, (_ones(),))
    yield "replay", power(_ones())


def keyword_bug():
    """A graphed layer can be called with a keyword, as the layer could.

    Seen instead: a `TypeError`; inputs are told apart by their position alone.
    """
    layer = torch.cuda.make_graphed_callables(_scale(), (_ones(),))
    yield "replay", layer(input=_ones())


def _first_only(x, unused):
    return x * 2


def unused_input_bug():
    """A function need not use each of its inputs.

    Seen instead: a `RuntimeError` in the warm-up, where the gradient of each input that requires one is asked for. From 2.13
    on it says which input: https://github.com/pytorch/pytorch/pull/181917
    """
    samples = _ones(requires_grad=True), _ones(requires_grad=True)
    yield "replay", torch.cuda.make_graphed_callables(_first_only, samples)(*samples)


def unused_input_fix():
    """With `allow_unused_input=True` an input may stay unused: 2."""
    samples = _ones(requires_grad=True), _ones(requires_grad=True)
    yield "replay", torch.cuda.make_graphed_callables(_first_only, samples, allow_unused_input=True)(*samples)


def double_backward_eager():
    """The second derivative of x cubed at 1: 6."""
    x = _ones(requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    yield "replay", torch.autograd.grad(first, x)[0]


def double_backward_bug():
    """A graphed function can be differentiated twice, as in eager mode.

    Seen instead: a `RuntimeError`. The first derivative is the output of a graph, and nobody knows what made it.
    """
    x = _ones(requires_grad=True)
    cube = torch.cuda.make_graphed_callables(lambda x: x**3, (_ones(requires_grad=True),))
    (first,) = torch.autograd.grad(cube(x), x, create_graph=True)
    yield "replay", torch.autograd.grad(first, x)[0]


def _checkpointed(use_reentrant):
    return lambda x: checkpoint(lambda x: x * 2, x, use_reentrant=use_reentrant)


def checkpoint_reentrant_bug():
    """A function that uses the reentrant checkpoint can be graphed.

    Seen instead: a `RuntimeError`; graphing asks for gradients by `torch.autograd.grad`, which that checkpoint forbids.
    """
    sample = (_ones(requires_grad=True),)
    yield "replay", torch.cuda.make_graphed_callables(_checkpointed(use_reentrant=True), sample)(*sample)


def checkpoint_fix():
    """A function that uses the other checkpoint can be graphed: 2."""
    sample = (_ones(requires_grad=True),)
    yield "replay", torch.cuda.make_graphed_callables(_checkpointed(use_reentrant=False), sample)(*sample)
