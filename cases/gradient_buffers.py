"""Gradients and weights that a graph knows by address, and code between replays that gives them another.

A captured backward pass writes where its gradients lay, a captured step reads there, and both know the weights by address.
Ordinary training code moves all three: `zero_grad` drops gradients, accumulation adds to what is there, a checkpoint may
be loaded by assignment.

Mechanism: frozen pointer
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
"""

import torch


def _weight_and_rate():
    weight = torch.nn.Parameter(torch.zeros(1, device="cuda"))
    return weight, torch.optim.SGD([weight], lr=1.0)


def _captured_backward(weight):
    """A graph of the backward pass of a loss whose gradient is 1."""
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (weight * x).sum().backward()
    return graph, x


def eager():
    """Three steps under a gradient of 1: -1, -2, -3."""
    weight, optimizer = _weight_and_rate()
    for _ in range(3):
        optimizer.zero_grad()
        (weight * torch.ones(1, device="cuda")).sum().backward()
        optimizer.step()
        yield "replay", weight


def zero_grad_bug():
    """The loop of any tutorial trains: zero the gradients, replay forward and backward, step.

    Seen instead: 0, 0, 0. `zero_grad` sets the gradient to None by default. The replay still writes where it lay, but the
    weight has no gradient any more, so the step passes over it.
    """
    weight, optimizer = _weight_and_rate()
    graph, _x = _captured_backward(weight)
    for _ in range(3):
        optimizer.zero_grad()
        graph.replay()
        optimizer.step()
        yield "replay", weight


def fix_no_zero_grad():
    """Captured with no gradient there, a backward pass overwrites its own at each replay; nothing need be zeroed."""
    weight, optimizer = _weight_and_rate()
    graph, _x = _captured_backward(weight)
    for _ in range(3):
        graph.replay()
        optimizer.step()
        yield "replay", weight


def left_by_warmup_bug():
    """A warm-up before the capture changes nothing about the training after it.

    Seen instead: -2, -5, -9. The warm-up left a gradient of 1, so what was captured adds to it, and no step starts at 0.
    """
    weight, optimizer = _weight_and_rate()
    (weight * 1).sum().backward()
    graph, _x = _captured_backward(weight)
    for _ in range(3):
        graph.replay()
        optimizer.step()
        yield "replay", weight


def fix_drop_before_capture():
    """Gradients set to None after the warm-up, before the capture: -1, -2, -3."""
    weight, optimizer = _weight_and_rate()
    (weight * 1).sum().backward()
    optimizer.zero_grad(set_to_none=True)
    graph, _x = _captured_backward(weight)
    for _ in range(3):
        graph.replay()
        optimizer.step()
        yield "replay", weight


def fix_zero_in_place():
    """Gradients that are kept and zeroed in place before each replay are added to from 0."""
    weight, optimizer = _weight_and_rate()
    (weight * 1).sum().backward()
    graph, _x = _captured_backward(weight)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        graph.replay()
        optimizer.step()
        yield "replay", weight


def _captured_step():
    """A graph of one step, with the weight, and the gradient that was there at capture."""
    weight, optimizer = _weight_and_rate()
    weight.grad = gradient = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    return graph, weight, gradient


def other_gradient_eager():
    """Gradients of 1, 2, 3: -1, -3, -6."""
    weight, optimizer = _weight_and_rate()
    for number in (1.0, 2.0, 3.0):
        weight.grad = torch.full((1,), number, device="cuda")
        optimizer.step()
        yield "replay", weight


def other_gradient_bug():
    """A captured step uses the gradient that the weight has.

    Seen instead: -1, -2, -3. It uses the one that the weight had.
    """
    graph, weight, _kept = _captured_step()
    for number in (1.0, 2.0, 3.0):
        weight.grad = torch.full((1,), number, device="cuda")
        graph.replay()
        yield "replay", weight


def other_gradient_fix():
    """A gradient that is copied into the one of the capture is used."""
    graph, weight, gradient = _captured_step()
    for number in (1.0, 2.0, 3.0):
        gradient.copy_(torch.full((1,), number, device="cuda"))
        graph.replay()
        yield "replay", weight


def _clip(weight):
    return torch.nn.utils.clip_grad_norm_([weight], max_norm=1.0)


def _weight_with_gradient():
    weight = torch.nn.Parameter(torch.zeros(2, device="cuda"))
    weight.grad = torch.zeros(2, device="cuda")
    return weight


def clip_eager():
    """Gradients of (3, 4) and (6, 8) have norms of 5 and 10, and are scaled to a norm of 1."""
    weight = _weight_with_gradient()
    for factor in (1.0, 2.0):
        weight.grad.copy_(torch.tensor([3.0, 4.0]) * factor)
        yield "replay", _clip(weight)
        yield "replay", weight.grad


def clip():
    """`clip_grad_norm_` can be captured, and follows the gradients of each replay."""
    weight = _weight_with_gradient()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        norm = _clip(weight)
    for factor in (1.0, 2.0):
        weight.grad.copy_(torch.tensor([3.0, 4.0]) * factor)
        graph.replay()
        yield "replay", norm
        yield "replay", weight.grad


def clip_nonfinite_bug():
    """`clip_grad_norm_` with `error_if_nonfinite=True` can be captured as well.

    Seen instead: an error. To raise, Python must know the norm, and waits for it.
    """
    weight = _weight_with_gradient()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        norm = torch.nn.utils.clip_grad_norm_([weight], max_norm=1.0, error_if_nonfinite=True)
    graph.replay()
    yield "replay", norm


def _captured_layer():
    """A graph of a layer whose only weight is 1, with input and output; the weight is kept whatever the layer does."""
    layer = torch.nn.Linear(1, 1, bias=False).cuda().requires_grad_(False)
    layer.weight.fill_(1)
    x, weight = torch.ones(1, device="cuda"), layer.weight
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * layer.weight
    return layer, graph, y, (x, weight)


def load_eager():
    """A weight of 1, then one of 2 from a checkpoint: 1, 2."""
    yield "replay", 1.0
    yield "replay", 2.0


def load_by_assignment_bug():
    """A layer that loads a checkpoint with `assign=True` computes with it in a graph, too.

    Seen instead: 1, 1. The layer has another weight now, and the graph has the old one.
    """
    layer, graph, y, _kept = _captured_layer()
    graph.replay()
    yield "replay", y.item()
    layer.load_state_dict({"weight": torch.full((1, 1), 2.0, device="cuda")}, assign=True)
    graph.replay()
    yield "replay", y.item()


def load_in_place_fix():
    """A checkpoint is copied into the weights by default, and the graph reads it."""
    layer, graph, y, _kept = _captured_layer()
    graph.replay()
    yield "replay", y.item()
    layer.load_state_dict({"weight": torch.full((1, 1), 2.0, device="cuda")})
    graph.replay()
    yield "replay", y.item()
