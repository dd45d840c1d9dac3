"""Optimizers whose step is captured: where their state lives, when it is made, and which numbers stay on the host.

A captured step is the kernels of one step. What the optimizer counts or computes in Python happens once, at capture: step
numbers on the CPU, learning rates that are floats, hooks. And what it makes on its first step, it makes anew at each
replay if that first step was the captured one.

Mechanism: frozen choice
Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

import torch

GRADIENTS = [1.0, 2.0, 4.0, 8.0]


def _weight():
    """A weight of 0 that has a gradient of 1."""
    weight = torch.nn.Parameter(torch.zeros(1, device="cuda"))
    weight.grad = torch.ones(1, device="cuda")
    return weight


def _adam(weight, **options):
    return torch.optim.Adam([weight], lr=0.125, **{"capturable": True, **options})


def _capture(optimizer):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    return graph


def _steps(weight, step, gradients=GRADIENTS):
    for gradient in gradients:
        weight.grad.fill_(gradient)
        step()
        yield "replay", weight


def eager():
    """Four steps of Adam."""
    weight = _weight()
    yield from _steps(weight, _adam(weight).step)


def adam_bug():
    """A step of Adam can be captured.

    Seen instead: a `RuntimeError` that asks for `capturable=True`, since Adam counts its steps on the CPU by default.
    """
    weight = _weight()
    optimizer = _adam(weight, capturable=False)
    optimizer.step()
    yield from _steps(weight, _capture(optimizer).replay)


def first_step_bug():
    """Captured steps of Adam go on from each other, as in eager mode.

    Seen instead: 0.125 each time, whatever the gradient. The first step makes the moments, so zeros were recorded too, and
    each replay is a first step.
    """
    weight = _weight()
    yield from _steps(weight, _capture(_adam(weight)).replay)


def _after_one_step(weight, optimizer):
    """A first step in eager mode, which makes the state; then a capture, and replays."""
    yield from _steps(weight, optimizer.step, GRADIENTS[:1])
    yield from _steps(weight, _capture(optimizer).replay, GRADIENTS[1:])


def fix_capturable():
    """With `capturable=True`, and a step before the capture, replays are the steps of eager mode."""
    weight = _weight()
    yield from _after_one_step(weight, _adam(weight))


def fused_eager():
    """Four steps of the fused Adam."""
    weight = _weight()
    yield from _steps(weight, _adam(weight, fused=True).step)


def fused():
    """The fused Adam, with `capturable=True`, replays the steps of eager mode."""
    weight = _weight()
    yield from _after_one_step(weight, _adam(weight, fused=True))


def _momentum(weight):
    return torch.optim.SGD([weight], lr=1.0, momentum=0.5)


def momentum_eager():
    """Gradients of 1 with a momentum of 1/2: -1, -2.5, -4.25, -6.125."""
    weight = _weight()
    yield from _steps(weight, _momentum(weight).step, [1.0] * 4)


def momentum_bug():
    """Captured steps with momentum gather speed, as in eager mode.

    Seen instead: -1, -2, -3, -4. SGD asks for no `capturable` and warns of nothing, but its first step makes the buffer as
    a copy of the gradient, and that copy is what was recorded.
    """
    weight = _weight()
    yield from _steps(weight, _capture(_momentum(weight)).replay, [1.0] * 4)


def momentum_fix():
    """With a step before the capture the buffer is there, and replays gather speed."""
    weight = _weight()
    optimizer = _momentum(weight)
    yield from _steps(weight, optimizer.step, [1.0])
    yield from _steps(weight, _capture(optimizer).replay, [1.0] * 3)


def _scheduled(lr, **options):
    weight = _weight()
    optimizer = torch.optim.SGD([weight], lr=lr, **options)
    return weight, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)


def _steps_of_both(weight, step, scheduler):
    for _ in range(4):
        step()
        scheduler.step()
        yield "replay", weight


def scheduler_eager():
    """Rates of 1, 1/2, 1/4, 1/8: -1, -1.5, -1.75, -1.875."""
    weight, optimizer, scheduler = _scheduled(1.0)
    yield from _steps_of_both(weight, optimizer.step, scheduler)


def scheduler_bug():
    """A scheduler changes the rate of a captured step.

    Seen instead: -1, -2, -3, -4. The scheduler rebinds a float, which the kernels have a copy of.
    """
    weight, optimizer, scheduler = _scheduled(1.0)
    yield from _steps_of_both(weight, _capture(optimizer).replay, scheduler)


def scheduler_fix():
    """A rate that is a tensor is filled by the scheduler, and the fused SGD reads it at each replay."""
    weight, optimizer, scheduler = _scheduled(torch.ones((), device="cuda"), fused=True)
    yield from _steps_of_both(weight, _capture(optimizer).replay, scheduler)


def scheduler_unfused_bug():
    """A rate that is a tensor on the GPU can be captured with any SGD.

    Seen instead: an error. The SGD that is not fused passes the rate as a number to its kernels, and must wait for it.
    """
    weight, optimizer, scheduler = _scheduled(torch.ones((), device="cuda"), foreach=True)
    yield from _steps_of_both(weight, _capture(optimizer).replay, scheduler)


def _decayed(weight):
    return torch.optim.Adagrad([weight], lr=1.0, lr_decay=1.0)


def adagrad_eager():
    """Adagrad with a rate of 1, 1/2, 1/3: -1, -1.354, -1.546."""
    weight = _weight()
    for _, value in _steps(weight, _decayed(weight).step, [1.0] * 3):
        yield "replay", round(value.item(), 3)


def adagrad_bug():
    """The rate of a captured Adagrad decays.

    Seen instead: -1, -1.707, -2.284, a rate of 1 for good. Adagrad counts on the CPU, and does not check for a capture.
    """
    weight = _weight()
    for _, value in _steps(weight, _capture(_decayed(weight)).replay, [1.0] * 3):
        yield "replay", round(value.item(), 3)


def _resume(weight, capturable):
    """An Adam made with `capturable=True` that took over a state which says `capturable`, after a step that was not captured."""
    before, optimizer = _adam(weight, capturable=False), _adam(weight)
    yield from _steps(weight, before.step, GRADIENTS[:1])
    state = before.state_dict()
    for group in state["param_groups"]:
        group["capturable"] = capturable
    optimizer.load_state_dict(state)
    return optimizer


def load_state_eager():
    """A step, and three more by an optimizer that loaded the first one's state."""
    weight = _weight()
    optimizer = yield from _resume(weight, capturable=True)
    yield from _steps(weight, optimizer.step, GRADIENTS[1:])


def load_state_bug():
    """An optimizer made with `capturable=True` stays so when it loads the state of a run that was not captured.

    Seen instead: a `RuntimeError`. The option is part of the state, and came back as False.
    """
    weight = _weight()
    optimizer = yield from _resume(weight, capturable=False)
    yield from _steps(weight, _capture(optimizer).replay, GRADIENTS[1:])


def load_state_fix():
    """With the option set in the state before it is loaded, the count of steps goes to the GPU, and replays go on."""
    weight = _weight()
    optimizer = yield from _resume(weight, capturable=True)
    yield from _steps(weight, _capture(optimizer).replay, GRADIENTS[1:])


def hook_eager():
    """A hook after each step runs 1, 2, 3 times."""
    yield from (("replay", count) for count in (1, 2, 3))


def hook_bug():
    """A hook after each step runs at each replay.

    Seen instead: 1, 1, 1. Hooks are Python, which ran once.
    """
    weight, calls = _weight(), []
    optimizer = torch.optim.SGD([weight], lr=1.0)
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    graph = _capture(optimizer)
    for _ in range(3):
        graph.replay()
        yield "replay", len(calls)
