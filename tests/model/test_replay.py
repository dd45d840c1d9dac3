"""Capture and replay: what a graph computes, and when it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled

STEPS = {
    "add": lambda values, a, b: values.append(values[a] + values[b]),
    "scale": lambda values, a, _b: values.append(values[a] * 0.5),
    "sin": lambda values, a, _b: values.append(values[a].sin()),
    "matmul": lambda values, a, b: values.append(values[a] @ values[b]),
    "transpose": lambda values, a, _b: values.append(values[a].t()),
    "row": lambda values, a, b: values.append(values[a] + values[b][0]),
    "sum": lambda values, a, _b: values.append(values[a].sum(0, keepdim=True).expand(3, 3)),
    # Not into an expanded tensor: torch refuses to write where several elements share one place.
    "in_place": lambda values, a, b: values[a].copy_(values[a] + values[b]) if a >= 2 and 0 not in values[a].stride() else None,
    "drop": lambda values, a, _b: values.pop(a) if a >= 2 and len(values) > 3 else None,
    "softmax": lambda values, a, _b: values.append(values[a].softmax(1)),
    "where": lambda values, a, b: values.append(torch.where(values[a] > 0, values[b], values[a])),
    "sort": lambda values, a, _b: values.append(values[a].sort(1).values),
    "mul_": lambda values, a, _b: values.append(values[a].clone().mul_(1.5)),
    "cat": lambda values, a, b: values.append(torch.cat([values[a], values[b]], 1)[:, 1:4]),
    "zeros": lambda values, _a, _b: values.append(torch.zeros(3, 3, device=values[0].device)),
    "max": lambda values, a, b: values.append(torch.maximum(values[a], values[b])),
}
PROGRAMS = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=25)


def compute(program, x, y):
    """The last value of a random program on two 3 x 3 inputs, which it leaves alone."""
    values = [x, y]
    for name, a, b in program:
        STEPS[name](values, a % len(values), b % len(values))
    return values[-1] + 0


def close(first, second):
    """True where both hold the same numbers, to rounding."""
    return torch.allclose(first.cpu(), second.cpu(), rtol=1e-4, atol=1e-5, equal_nan=True)


@settings(max_examples=40, deadline=None, database=None)
@given(PROGRAMS, st.integers(0, 1000))
def test_a_replay_computes_what_eager_and_the_cpu_compute(program, seed):
    """Any program of operators on static inputs gives one value three ways, for the inputs it was captured with and for others."""
    torch.manual_seed(seed)
    inputs = [(torch.randn(3, 3), torch.randn(3, 3)) for _ in range(3)]
    x, y = (value.cuda() for value in inputs[0])
    compute(program, x, y)  # cuBLAS makes its handle outside a capture.
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute(program, x, y)
    for a, b in inputs:
        x.copy_(a)
        y.copy_(b)
        graph.replay()
        eager = compute(program, a.cuda(), b.cuda())
        assert result.device.type == eager.device.type == "cuda"
        assert close(result, eager)
        assert close(eager, compute(program, a, b))


def test_a_capture_computes_nothing():
    """Until the first replay an output holds what lay in its block."""
    x = torch.full((3,), 2.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        y = x * 2

    assert x.tolist() == [2, 2, 2]
    assert y.tolist() == [0, 0, 0]
    graph.replay()
    assert y.tolist() == [6, 6, 6]


def test_an_in_place_update_adds_up_over_replays():
    """The graph reads what the replay before it wrote."""
    x = torch.zeros(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 2
    for _ in range(5):
        graph.replay()

    assert x.item() == 10


def test_python_numbers_are_frozen_and_device_numbers_are_not():
    """A number of Python is part of the graph, a 0-dim CPU tensor too; a CUDA tensor is read anew."""
    number, host, device = 2.0, torch.tensor(3.0), torch.tensor(5.0, device="cuda")
    x = torch.ones(1, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * number + x * host + x * device
    number = 20.0
    host.fill_(30)
    device.fill_(50)
    graph.replay()

    assert y.item() == 2 + 3 + 50


def test_graphs_replayed_in_a_capture_become_part_of_it():
    """Several graphs make one, with work before, between and after; each replay of it runs them in order."""
    x = torch.zeros(2, device="cuda")
    inner = []
    for change in (lambda: x.add_(1), lambda: x.mul_(3)):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            change()
        inner.append(graph)
    outer = torch.cuda.CUDAGraph()
    with torch.cuda.graph(outer):
        x.add_(10)
        inner[0].replay()
        inner[1].replay()
        y = x - 1
        inner[0].replay()
    assert x.tolist() == [0, 0]
    outer.replay()
    assert (x.tolist(), y.tolist()) == ([34, 34], [32, 32])
    inner[1].replay()
    outer.replay()

    assert (x.tolist(), y.tolist()) == ([340, 340], [338, 338])


def test_a_graph_replayed_on_a_forked_stream_of_a_capture_is_joined():
    """The other graph's work lies on the branch on which it was replayed."""
    x, y = torch.zeros(2, device="cuda"), torch.zeros(2, device="cuda")
    inner, outer, side = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(inner):
        x.add_(1)
    with torch.cuda.graph(outer):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            inner.replay()
        y.add_(5)
        torch.cuda.current_stream().wait_stream(side)
        z = x + y
    for number in (1, 2):
        outer.replay()
        assert z.tolist() == [6 * number] * 2


class TestRandomNumbers:
    """Generators in graphs: eager and graph draw the same numbers."""

    def test_a_graph_draws_what_eager_would(self):
        """After one seed, three replays give what three eager calls give."""
        x = torch.ones(100, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)
        torch.cuda.manual_seed(7)
        replays = []
        for _ in range(3):
            graph.replay()
            replays.append(y.tolist())
        torch.cuda.manual_seed(7)
        eager = [(torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)).tolist() for _ in range(3)]

        assert replays == eager
        assert replays[0] != replays[1]

    def test_replays_and_eager_calls_share_one_sequence(self):
        """An eager draw between two replays moves the generator on for the next."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.randn(8, device="cuda")
        torch.cuda.manual_seed(3)
        graph.replay()
        first = y.tolist()
        second = torch.randn(8, device="cuda").tolist()
        graph.replay()
        third = y.tolist()
        torch.cuda.manual_seed(3)
        plain = [torch.randn(8, device="cuda").tolist() for _ in range(3)]

        assert [first, second, third] == plain

    def test_the_state_can_be_saved_and_restored(self):
        """`get_rng_state` and `set_rng_state` repeat a draw; `fork_rng` leaves no trace."""
        torch.cuda.manual_seed(5)
        state = torch.cuda.get_rng_state()
        first = torch.rand(4, device="cuda").tolist()
        with torch.random.fork_rng(devices=[0]):
            torch.cuda.manual_seed(99)
            torch.rand(4, device="cuda")
        second = torch.rand(4, device="cuda").tolist()
        torch.cuda.set_rng_state(state)

        assert torch.rand(4, device="cuda").tolist() == first
        assert torch.rand(4, device="cuda").tolist() == second

    def test_device_and_host_draw_from_generators_of_their_own(self):
        """A draw on the device does not move the CPU's generator."""
        torch.manual_seed(1)
        expected = torch.rand(3).tolist()
        torch.manual_seed(1)
        torch.rand(50, device="cuda")
        torch.randperm(20, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.rand(1000, device="cuda")
        graph.replay()

        assert torch.rand(3).tolist() == expected

    def test_a_generator_object_repeats_with_its_seed(self):
        """A generator of one's own on the device is independent of the default one."""
        generator = torch.Generator("cuda")
        generator.manual_seed(11)
        first = torch.randn(4, device="cuda", generator=generator).tolist()
        torch.cuda.manual_seed(1)
        generator.manual_seed(11)

        assert torch.randn(4, device="cuda", generator=generator).tolist() == first
        assert isinstance(generator, torch.Generator)
        assert generator.device == torch.device("cuda", 0)
        assert generator.initial_seed() == 11


class TestLifecycle:
    """Graphs that are kept, reset, nested, shared, or that failed."""

    def test_a_kept_graph_is_instantiated_by_hand(self):
        """`keep_graph=True` leaves instantiation to the user; it may come again after a capture."""
        x = torch.ones(1, device="cuda")
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph):
            x += 1
        graph.instantiate()
        graph.replay()

        assert x.item() == 2

    def test_a_replay_inside_a_capture_becomes_part_of_the_graph(self):
        """The outer graph runs the inner one between its own nodes, also after the inner one is gone."""
        x = torch.ones(1, device="cuda")
        inner, outer = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(inner):
            x *= 2
        with torch.cuda.graph(outer):
            x += 1
            inner.replay()
            x += 1
        outer.replay()
        first = x.item()
        outer.replay()

        assert (first, x.item()) == (5, 13)

    def test_a_second_capture_into_one_graph_is_refused(self):
        """A graph holds one capture until it is reset."""
        x = torch.ones(1, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 1
        with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(graph):
            x += 1
        graph.reset()
        torch.cuda.synchronize()

    def test_a_reset_graph_can_capture_again(self):
        """After `reset` the graph records anew."""
        x = torch.ones(1, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 1
        graph.reset()
        # From 2.14 on torch's Python instantiates before it replays.
        with pytest.raises(RuntimeError, match="without a preceding successful capture|must have been called before calling instantiate"):
            graph.replay()
        with torch.cuda.graph(graph):
            x += 10
        graph.replay()

        assert x.item() == 11

    def test_capture_on_the_default_stream_is_refused(self):
        """CUDA cannot capture the legacy stream."""
        with pytest.raises(RuntimeError, match="non-default stream"):
            torch.cuda.CUDAGraph().capture_begin()

    def test_a_failed_capture_leaves_room_for_a_good_one(self):
        """After an exception in a capture the next one works, in the same process and on the same stream."""
        x = torch.ones(1, device="cuda")
        with pytest.raises(ValueError, match="mine"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            x += 1
            raise ValueError("mine")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 5
        graph.replay()

        assert x.item() == 6
        assert not torch.cuda.is_current_stream_capturing()

    def test_reading_a_value_in_a_capture_loses_the_capture(self):
        """`.item()` raises CUDA's error 900, leaving raises its error 901, and another capture then works."""
        x = torch.ones(1, device="cuda")
        with pytest.raises(RuntimeError, match="previous error during capture") as failure:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                x.item()
        assert "not permitted when stream is capturing" in str(failure.value.__context__)
        torch.cuda.set_stream(torch.cuda.default_stream())  # torch leaves its side stream current when a capture's end raises
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x += 5
        graph.replay()

        assert x.item() == 6

    @pytest.mark.parametrize("read", ["tolist", "item", "bool", "nonzero", "mask", "cpu", "synchronize", "equal", "print", "unique"])
    def test_what_waits_for_the_device_is_refused_in_a_capture(self, read):
        """Whatever needs a value on the host cannot be recorded."""
        x = torch.ones(1, device="cuda")
        reads = {
            "tolist": x.tolist, "item": x.item, "bool": lambda: bool(x), "nonzero": x.nonzero, "mask": lambda: x[x > 0], "cpu": x.cpu,
            "synchronize": torch.cuda.synchronize, "equal": lambda: torch.equal(x, x), "print": lambda: str(x), "unique": x.unique,
        }  # fmt: skip
        with pytest.raises(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph()):
            reads[read]()

    def test_an_empty_capture_warns(self):
        """A graph without nodes is reported, and replays nothing."""
        graph = torch.cuda.CUDAGraph()
        with pytest.warns(UserWarning, match="CUDA Graph is empty"), torch.cuda.graph(graph):
            pass
        graph.replay()

    def test_graphed_callables_give_eager_gradients(self):
        """`make_graphed_callables` trains a module as eager does."""
        torch.manual_seed(0)
        eager = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).cuda()
        graphed = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).cuda()
        graphed.load_state_dict(eager.state_dict())
        made = torch.cuda.make_graphed_callables(graphed, (torch.randn(3, 4, device="cuda", requires_grad=True),))
        optimizers = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (eager, graphed)]
        for _ in range(4):
            x = torch.randn(3, 4, device="cuda")
            losses = []
            for module, optimizer in zip((eager, made), optimizers, strict=True):
                optimizer.zero_grad(set_to_none=True)
                loss = module(x).pow(2).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            assert losses[0] == pytest.approx(losses[1], rel=1e-5)
