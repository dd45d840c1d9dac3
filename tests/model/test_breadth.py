"""What people capture: a graph gives what the same code gives eagerly, for whole training steps and for operators of every kind.

Two copies of a model take the same steps on the same batches, one eagerly and one as a graph that is replayed. Parameters,
buffers and losses must come out the same: not close, the same numbers, since the same kernels run on the same values.
"""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled
nn, F = torch.nn, torch.nn.functional

WARMUP, STEPS = 3, 4


class Net(nn.Module):
    """Parts in a row, some of which return more than their output."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        """The output of the last part."""
        for part in self.parts:
            x = part(x)
            x = x[0] if isinstance(x, tuple) else x
        return x


class Attention(nn.Module):
    """Self-attention through scaled_dot_product_attention."""

    def __init__(self, width, causal=False):
        super().__init__()
        self.project, self.causal = nn.Linear(width, 3 * width), causal

    def forward(self, x):
        """Of shape (batch, length, width), as the input."""
        return F.scaled_dot_product_attention(*self.project(x).chunk(3, -1), is_causal=self.causal)


class Square(torch.autograd.Function):
    """A square with its own gradient."""

    @staticmethod
    def forward(ctx, x):
        """The square."""
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, gradient):
        """Twice x times the gradient."""
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Squared(nn.Module):
    """The function above, as a part."""

    def forward(self, x):
        """The square."""
        return Square.apply(x)


class Checkpointed(nn.Module):
    """A part whose activations are computed again in the backward pass."""

    def __init__(self, part, reentrant):
        super().__init__()
        self.part, self.reentrant = part, reentrant

    def forward(self, x):
        """What the part gives."""
        return torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=self.reentrant, preserve_rng_state=False)


def linear(*more):
    """Two linear layers with something between."""
    return Net(nn.Linear(6, 8), *(more or (nn.ReLU(),)), nn.Linear(8, 3)), (5, 6)


NETWORKS = {
    "linear layers": linear,
    "convolutions with batch norm": lambda: (
        Net(
            nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(),
            nn.Linear(16, 3),
        ), (5, 2, 8, 8),
    ),
    "transposed convolution": lambda: (
        Net(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.GroupNorm(3, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten()), (4, 2, 5, 5),
    ),
    "attention": lambda: (Net(nn.Linear(6, 8), Attention(8), nn.Linear(8, 3)), (4, 5, 6)),
    "causal attention": lambda: (Net(nn.Linear(6, 8), Attention(8, causal=True), nn.Linear(8, 3)), (4, 5, 6)),
    "a transformer's layer": lambda: (Net(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Linear(8, 3)), (3, 5, 8)),
    "an LSTM": lambda: (Net(nn.LSTM(6, 8, num_layers=2, batch_first=True), nn.Linear(8, 3)), (4, 5, 6)),
    "a GRU of two directions": lambda: (Net(nn.GRU(6, 4, bidirectional=True), nn.Linear(8, 3)), (4, 5, 6)),
    "layer norm and GELU": lambda: linear(nn.LayerNorm(8), nn.GELU()),
    "a function with its own gradient": lambda: linear(Squared()),
    "a checkpoint": lambda: linear(Checkpointed(nn.Sequential(nn.Linear(8, 8), nn.Tanh()), reentrant=False)),
    "a reentrant checkpoint": lambda: linear(Checkpointed(nn.Sequential(nn.Linear(8, 8), nn.Tanh()), reentrant=True)),
    "weight and spectral norm": lambda: (
        Net(nn.utils.parametrizations.weight_norm(nn.Linear(6, 8)), nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3))), (5, 6),
    ),
}  # fmt: skip
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, foreach=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    "Adam, one by one": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True, foreach=False),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01, device="cuda"), fused=True, capturable=True),
    "AdamW with amsgrad": lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01, device="cuda"), capturable=True, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, capturable=True),
    "Adadelta": lambda p: torch.optim.Adadelta(p, capturable=True),
    "NAdam": lambda p: torch.optim.NAdam(p, capturable=True),
    "RAdam": lambda p: torch.optim.RAdam(p, capturable=True),
    "ASGD": lambda p: torch.optim.ASGD(p, capturable=True),
    "Rprop": lambda p: torch.optim.Rprop(p, capturable=True),
}


def take_a_step(net, optimizer, x, target, clip):
    """One training step; the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(net(x), target)
    loss.backward()
    if clip:
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    optimizer.step()
    return loss


def compare_training(net, shape, make_optimizer, *, clip=False):
    """Train two copies of a network, one by a graph, and hold them against each other."""
    nets = [net.cuda(), copy.deepcopy(net).cuda()]
    optimizers = [make_optimizer(one.parameters()) for one in nets]
    x = torch.randn(shape, device="cuda")
    target = torch.randn_like(nets[0].eval()(x))
    for one in nets:
        one.train()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for one, optimizer in zip(nets, optimizers, strict=True):
            for _ in range(WARMUP):
                take_a_step(one, optimizer, x, target, clip)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizers[1].zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = take_a_step(nets[1], optimizers[1], x, target, clip)
    before = [value.clone() for value in nets[1].state_dict().values()]
    for _ in range(STEPS):
        x.copy_(torch.randn(shape))
        target.copy_(torch.randn(target.shape))
        eager = take_a_step(nets[0], optimizers[0], x, target, clip)
        graph.replay()
        assert eager.item() == loss.item()
    for (name, a), b in zip(nets[0].state_dict().items(), nets[1].state_dict().values(), strict=True):
        assert a.device.type == b.device.type == "cuda"
        assert torch.equal(a, b), name
    assert not all(torch.equal(a, b) for a, b in zip(before, nets[1].state_dict().values(), strict=True))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_trained_by_a_graph_is_the_one_trained_eagerly(network):
    """Losses, parameters and running statistics, step by step, with forward, backward and optimizer in one graph."""
    torch.manual_seed(1)
    net, shape = NETWORKS[network]()
    compare_training(net, shape, OPTIMIZERS["SGD"])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_in_a_graph_takes_the_steps_that_it_takes_eagerly(optimizer):
    """Each optimizer that can be captured, with its state on the GPU."""
    torch.manual_seed(2)
    net, shape = linear()
    compare_training(net, shape, OPTIMIZERS[optimizer])


def test_gradients_are_clipped_in_a_graph_as_they_are_eagerly():
    """clip_grad_norm_ works without a wait of the host."""
    torch.manual_seed(3)
    net, shape = linear()
    compare_training(net, shape, OPTIMIZERS["Adam"], clip=True)


def test_an_optimizer_that_cannot_be_captured_says_so():
    """Adam without capturable=True raises torch's own error, at the capture."""
    net, shape = linear()
    with pytest.raises(RuntimeError, match="capturable is False"):
        compare_training(net, shape, lambda p: torch.optim.Adam(p, lr=0.01))


def _gradient(x):
    """The gradient of a gradient."""
    x = x.detach().requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad((first**2).sum(), x)[0]


FUNCTIONS = {
    "fft": lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x * 2).conj() * 1j).sum(-1),
    "sort": lambda x: x.sort(1).values + x.argsort(0),
    "topk": lambda x: torch.cat(list(x.topk(2, 1)), 1),
    "gather": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "scatter": lambda x: torch.zeros_like(x).scatter_add_(1, x.argsort(1), x),
    "index_add": lambda x: torch.zeros_like(x).index_add_(0, x[:, 0].argsort(), x),
    "index_select": lambda x: x.index_select(1, x[0].argsort()),
    "masked_fill": lambda x: x.masked_fill(x > 0, -1.0),
    "where": lambda x: torch.where(x > 0, x, x.exp()),
    "cumsum": lambda x: x.cumsum(1) + x.cumprod(0),
    "norms": lambda x: torch.stack([x.norm(), x.std(), x.var(), x.logsumexp(1).sum()]),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "inverse-free algebra": lambda x: torch.triu(x @ x.T) + torch.diag(x[:, 0]),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "pad and unfold": lambda x: F.pad(x, (1, 2)).unfold(1, 3, 2).sum(-1),
    "roll and flip": lambda x: x.roll(1, 0).flip(1),
    "embedding": lambda x: F.embedding(x.argsort(1), x.repeat(2, 1)),
    "cross entropy": lambda x: F.cross_entropy(x, x.argmin(1)),
    "integers": lambda x: (x * 100).long() // 7 % 5 << 1,
    "half": lambda x: (x.half() * 2).float() + x.bfloat16().float(),
    "double": lambda x: x.double().tanh(),
    "bool": lambda x: ((x > 0) & (x < 1)).any(1) | (x * 2 != x).all(1),
    "bincount-free histogram": lambda x: torch.histc(x, 5, -2, 2),
    "searchsorted": lambda x: torch.searchsorted(x.sort(1).values, x),
    "split and stack": lambda x: torch.stack(x.split(2, 0)) + torch.stack(x.chunk(2, 0)),
    "out=": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "foreach": lambda x: torch.stack(torch._foreach_mul(torch._foreach_add(list(x.unbind()), 1.0), 2.0)),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x.T[None] @ x[None]),
    "arange": lambda x: x + torch.arange(5, device=x.device) * torch.ones((), device=x.device),
    "lerp and addcmul": lambda x: torch.lerp(x, x * 2, 0.3).addcmul(x, x, value=0.5),
    "a vector by a matrix": lambda x: torch.ones(4, device=x.device) @ x,
    "in place on a view": lambda x: (x * 1).t().unsqueeze_(0).squeeze_(0).transpose_(0, 1).add_(1),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:2] * 2, 0, 1, 3),
    "where with numbers": lambda x: torch.where(x > 0, x, 0.0) + x.where(x < 1, 2) + torch.where(x > 0, 1.0, 2.0),
    "matrix power": lambda x: torch.linalg.matrix_power(x @ x.T, 3),
    "cosine similarity": lambda x: F.cosine_similarity(x, x.roll(1, 0)),
    "causal attention": lambda x: F.scaled_dot_product_attention(x[None], x[None] * 2, x[None], is_causal=True),
    "short-time fourier transform": lambda x: torch.stft(x.flatten(), 8, window=torch.ones(8, device=x.device), return_complex=True).abs(),
    "vmap": torch.func.vmap(lambda row: row.dot(row)),
    "gradient of a function": torch.func.grad(lambda value: value.sin().sum()),
    "jacobian": lambda x: torch.func.jacrev(lambda value: value**2)(x[0]),
    "a gradient of a gradient": _gradient,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_in_a_graph_gives_what_it_gives_eagerly(function):
    """The same on new data after each replay, on the device and on the CPU."""
    call = FUNCTIONS[function]
    torch.manual_seed(4)
    x = torch.randn(4, 5, device="cuda")
    call(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = call(x)
    for _ in range(3):
        data = torch.randn(4, 5)
        x.copy_(data)
        graph.replay()
        eager, host = call(x), call(data)
        assert y.device.type == eager.device.type == "cuda"
        assert torch.equal(y, eager)
        assert torch.equal(eager.cpu(), host)


def test_a_quantile_is_computed_on_the_device():
    """C++ makes a tensor of the number within, which lies where the argument does."""
    x = torch.arange(5.0)

    assert x.cuda().quantile(0.25).device.type == "cuda"
    assert x.cuda().quantile(0.25).item() == torch.quantile(x.cuda(), torch.tensor(0.25).cuda()).item() == 1
