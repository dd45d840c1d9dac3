"""Conditional nodes: a part of a graph that runs at replay if, or for as long as, a number on the device is true.

Such a part is captured into a graph of its own, the body. While it is, the capture's nodes are the body's; at its end the
parent gets one node that looks at the handle and runs the body's nodes, in order, at one instant.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from replaydrift.model import rules
from replaydrift.model.arena import pointer
from replaydrift.model.captures import Node
from replaydrift.model.device import DEVICE
from replaydrift.model.submission import submit

_KERNEL_US = 2.0


@dataclass(eq=False)
class Body:
    """A body under way: its handle, whether it repeats, and the parent's nodes, which go on after it."""

    handle: list[bool]
    repeats: bool
    stream: int
    nodes: list[Node]
    tails: dict[int, frozenset[int]]
    drew: bool = False


def begin(condition: torch.Tensor, *, repeats: bool) -> None:
    """Record a kernel that sets a new handle from the condition, and capture the body from here on."""
    capture = DEVICE.capture
    if capture is None:
        raise RuntimeError("capture_begin() must be called before begin_capture_to_conditional_node()")
    handle = [False]
    _record_setting(handle, condition)
    capture.bodies.append(Body(handle, repeats, DEVICE.stream, capture.nodes, capture.tails))
    capture.nodes, capture.tails = [], {DEVICE.stream: frozenset()}


def set_handle(condition: torch.Tensor) -> None:
    """Record, in a body, a kernel that sets its handle anew: so a loop ends."""
    capture = DEVICE.capture
    if capture is None or not capture.bodies:
        raise RuntimeError("No active CUDA graph conditional node.")
    _record_setting(capture.bodies[-1].handle, condition)


def end() -> None:
    """End the body and give the parent its conditional node; RuntimeError where the body drew random numbers."""
    capture = DEVICE.capture
    if capture is None or not capture.bodies:
        raise RuntimeError("Missing capture ID for conditional node.")
    body, nodes = capture.bodies.pop(), capture.nodes
    capture.nodes, capture.tails = body.nodes, body.tails
    capture.add(body.stream, Node(_runner(body, nodes), sum(node.microseconds for node in nodes), (), "conditional"))
    if body.drew:
        raise RuntimeError(rules.text("random-in-conditional"))


def _record_setting(handle: list[bool], condition: torch.Tensor) -> None:
    address = pointer(condition)

    def work() -> None:
        handle[0] = ctypes.c_bool.from_address(address).value

    submit("set_conditional_handle", work, _KERNEL_US, reads=[condition], writes=[])


def _runner(body: Body, nodes: list[Node]) -> Callable[[], None]:
    def work() -> None:
        while body.handle[0]:
            for node in nodes:
                node.work()
            if not body.repeats:
                break

    return work


def run_eagerly(func: Any, args: Any) -> Any:
    """What a control-flow operator gives with no graph: Python looks at the condition, and waits for it."""
    if func is torch.ops.higher_order.cond:
        condition, if_true, if_false, operands = args
        return if_true(*operands) if condition else if_false(*operands)
    go_on, step, carried, additional = args
    while go_on(*carried, *additional):
        carried = step(*carried, *additional)
    return carried
