"""Conditional nodes by hand, through the methods of a graph that torch's control-flow modes call."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.modelled


def _flag(value: bool) -> object:
    return torch.full((), value, device="cuda")


def test_a_body_runs_if_its_condition_is_true() -> None:
    """What was captured into an if node runs at the replays that find the condition true; what follows it runs always."""
    x, condition = torch.zeros(2, device="cuda"), _flag(False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.begin_capture_to_if_node(condition)
        x[0] += 1
        graph.end_capture_to_conditional_node()
        x[1] += 1
    seen = []
    for value in (False, True, False):
        condition.fill_(value)
        graph.replay()
        seen.append(x.tolist())

    assert seen == [[0, 1], [1, 2], [1, 3]]


def test_a_body_repeats_until_its_handle_is_false() -> None:
    """A while node goes on for as long as the body sets its handle to true."""
    x, go_on = torch.zeros((), device="cuda"), _flag(True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph.begin_capture_to_while_node(go_on)
        x.add_(1)
        graph.set_conditional_handle_for_current_node(x < 5)
        graph.end_capture_to_conditional_node()
    graph.replay()

    assert x.item() == 5


def test_random_numbers_in_a_body_are_refused() -> None:
    """Up to 2.13 the draw itself is refused, from 2.14 on the end of the body; the parent's capture goes on."""
    x, condition = torch.zeros((), device="cuda"), _flag(True)
    graph = torch.cuda.CUDAGraph()
    generator = torch.Generator(device="cuda")
    with torch.cuda.graph(graph):
        graph.begin_capture_to_if_node(condition)
        with pytest.raises(RuntimeError, match=r"RNG (op during graph capture|within data-dependent)|not in capture mode"):
            try:
                torch.rand(1, device="cuda", generator=generator)
            finally:
                graph.end_capture_to_conditional_node()
        x.add_(1)
    graph.replay()

    assert x.item() == 1
