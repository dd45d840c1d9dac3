"""Python numbers that hide in a training loop: learning rate, step counter, loss scale.

Nothing at the call shows that such a number changes. A schedule rebinds `lr` between two steps, a trainer counts
`global_step`, and a graph that was captured with either keeps the value it was captured with. Each becomes right as soon
as it is a tensor that is filled before the replay. The loss scale of `GradScaler` is such a tensor already; what its
`step()` does on the host is another matter.

Mechanism: frozen choice
Source: https://docs.nvidia.com/dl-cuda-graph/latest/troubleshooting/numerical-errors.html
"""

import torch

LEARNING_RATES = [1.0, 0.5, 0.25, 0.125]
STEPS = [1, 2, 3, 4]


def _weight_and_gradient():
    return torch.zeros(1, device="cuda"), torch.ones(1, device="cuda")


def lr_eager():
    """A gradient of 1 under rates of 1, 1/2, 1/4, 1/8: the weight goes to -1, -1.5, -1.75, -1.875."""
    w, gradient = _weight_and_gradient()
    for lr in LEARNING_RATES:
        yield "replay", w.sub_(gradient * lr)


def lr_bug():
    """A learning rate follows its schedule, as in eager mode.

    Seen instead: -1, -2, -3, -4. The product was recorded with the first rate of the schedule.
    """
    w, gradient = _weight_and_gradient()
    lr = LEARNING_RATES[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        w.sub_(gradient * lr)
    for rate in LEARNING_RATES:
        lr = rate  # Moves a name; the graph has its number.
        graph.replay()
        yield "replay", w


def lr_fix():
    """A learning rate that is a tensor follows its schedule."""
    w, gradient = _weight_and_gradient()
    lr = torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        w.sub_(gradient * lr)
    for rate in LEARNING_RATES:
        lr.fill_(rate)
        graph.replay()
        yield "replay", w


def _model(x, step):
    """Stands for any model that looks at the step: a warm-up of a coefficient, a noise level, a position."""
    return x * step


def step_counter_eager():
    """An output of three times the step: 3, 6, 9, 12."""
    x = torch.full((1,), 3.0, device="cuda")
    for step in STEPS:
        yield "replay", _model(x, step=step)


def step_counter_bug():
    """A model that is told the step follows it, as in eager mode.

    Seen instead: 3 at each step, since step 1 was the one that was captured.
    """
    x = torch.full((1,), 3.0, device="cuda")
    step = STEPS[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _model(x, step=step)
    for number in STEPS:
        step = number
        graph.replay()
        yield "replay", y


def step_counter_fix():
    """A model that reads the step from a tensor follows it."""
    x = torch.full((1,), 3.0, device="cuda")
    step = torch.zeros(1, device="cuda", dtype=torch.int64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = _model(x, step=step)
    for number in STEPS:
        step.fill_(number)
        graph.replay()
        yield "replay", y


def _training():
    """A weight of 1, an optimizer that halves it at each step of the loss w², and a loss scale that doubles each step.

    All numbers are powers of two, so the eager run and a right graph agree to the last bit.
    """
    w = torch.ones(1, device="cuda", requires_grad=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0, growth_interval=1)
    # The first call makes the tensor of the scale. Made within a capture, it would be set back by each replay.
    scaler.scale(torch.zeros(1, device="cuda"))
    return w, torch.optim.SGD([w], lr=0.25), scaler


def grad_scaler_eager():
    """Weight and scale of an eager run: the weight halves, the scale doubles."""
    w, optimizer, scaler = _training()
    for _ in range(4):
        optimizer.zero_grad()
        scaler.scale((w**2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        yield "replay", {"weight": w, "scale": scaler.get_scale()}


def grad_scaler_bug():
    """A whole step captured, scaler included, gives weight and scale of the eager run.

    Seen instead: `step()` reads on the host whether a gradient was infinite, which no capture permits, so it raises.
    Were it silent, the graph would keep the answer of the captured step.
    """
    w, optimizer, scaler = _training()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scaler.scale((w**2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    for _ in range(4):
        graph.replay()
        yield "replay", {"weight": w, "scale": scaler.get_scale()}


def grad_scaler_fix():
    """A scaled backward captured, `step()` and `update()` left in eager mode, gives weight and scale of the eager run.

    `update()` rewrites the tensor of the scale in place, and the graph reads it through its address.
    """
    w, optimizer, scaler = _training()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scaler.scale((w**2).sum()).backward()
    for _ in range(4):
        graph.replay()
        scaler.step(optimizer)
        scaler.update()
        yield "replay", {"weight": w, "scale": scaler.get_scale()}
