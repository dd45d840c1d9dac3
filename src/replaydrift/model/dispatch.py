"""Every operator of torch passes here: run it now, queue it behind what its stream still does, or record it in a graph.

Below autograd, so derivatives, views and hooks are the real ones. An operator works on the device when any of its tensors
lies there, or when it is asked to make one there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from replaydrift.model import accumulation, blas, conditionals, random, starting, waiting
from replaydrift.model.arena import on_device
from replaydrift.model.clock import CLOCK
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import lack
from replaydrift.model.forms import form_of, tensors_in
from replaydrift.model.kernels import execute
from replaydrift.model.lacking import only_device
from replaydrift.model.operators import Operator, operator
from replaydrift.model.pinned import PINNED

aten = torch.ops.aten
_CPU = torch.device("cpu")
# Operators with a way of their own through the model; `special` fills it.
SPECIAL: dict[str, Callable[..., Any]] = {}


class _State(threading.local):
    """What the operators of one thread of Python leave for the next."""

    last_was_on_device = False  # a factory that the backward pass calls without a tensor goes where its neighbours are
    makes_on_device = False  # a function of C++ is at work whose own tensors go where its arguments lie
    asked_for_cpu = False  # `device="cpu"` was written out, which C++ cannot tell from a device it inherited


STATE = _State()


class CudaModel(TorchDispatchMode):
    """The one dispatch mode of the model."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # Else torch wraps __torch_dispatch__ and imports the whole of Dynamo.

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator the model's way."""
        if isinstance(func, HigherOrderOperator):
            if func not in (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop):
                raise lack(f"torch.ops.higher_order.{func.name()}")
            with self:
                return conditionals.run_eagerly(func, args)
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operator's results: real tensors, in the model's memory where the operator works on the device."""
    CLOCK.tick(COSTS.host_op_us)
    traits = operator(func)
    special = SPECIAL.get(traits.name)
    if special is not None:
        return special(func, args, kwargs, traits)
    tensors = tensors_in(args)
    if kwargs:
        tensors += tensors_in(kwargs)
    if not works_on_device(tensors, kwargs, traits):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return on_host(func, args, kwargs)
    starting.start()
    return on_device_run(func, args, kwargs, traits, tensors)


def works_on_device(tensors: list[torch.Tensor], kwargs: dict[str, Any], traits: Operator) -> bool:
    """True where a tensor lies on the device, or one is to be made there."""
    asked = kwargs.get("device") if traits.has_device else None
    if asked is not None and asked.type not in ("cpu", "cuda"):
        return False
    if asked is not None and asked.type == "cuda":
        only_device(asked)
        STATE.last_was_on_device = True
        return True
    for tensor in tensors:
        if on_device(tensor):
            STATE.last_was_on_device = True
            return not (asked is not None and STATE.asked_for_cpu)
    if tensors:
        STATE.last_was_on_device = False
        return False
    if not traits.has_device or STATE.asked_for_cpu:
        return False
    return STATE.makes_on_device or (torch._C._current_graph_task_id() != -1 and STATE.last_was_on_device)


def on_host(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The results of an operator of the CPU, in pinned memory where that was asked for."""
    if not kwargs.get("pin_memory"):
        return func(*args, **kwargs)
    result = func(*args, **{**kwargs, "pin_memory": False})
    form = form_of(result)
    pinned = PINNED.new_tensor(form.dtype, form.size, form.stride, form.nbytes)
    return pinned.copy_(result)


def on_device_run(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator, tensors: list[torch.Tensor]) -> Any:
    """Run, queue or record an operator that works on the device."""
    if traits.has_device and kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": _CPU}
    if kwargs.get("pin_memory"):
        kwargs = {**kwargs, "pin_memory": False}
    if traits.is_view:
        return func(*args, **kwargs)
    strangers = [tensor for tensor in tensors if tensor.dim() and tensor.numel() and not on_device(tensor)]
    if strangers:
        _refuse_strangers(strangers, traits)
    waits = traits.syncs or _has_mask(args, kwargs, traits)
    if waits:
        synchronise_for(traits.name)
    blas.prepare(traits.name)
    if accumulation.is_one(traits, args, kwargs):
        return execute(aten.add_.Tensor, args, kwargs, operator(aten.add_.Tensor))
    if traits.random:
        return random.run(func, args, kwargs, traits, execute)
    results = execute(func, args, kwargs, traits)
    blas.work(traits.name)
    if waits and DEVICE.observer is not None:
        DEVICE.observer.host_waited(DEVICE.stream)
    return results


def synchronise_for(name: str) -> None:
    """Wait as an operator does that reads on the host; in a capture that is an error, and the capture is lost."""
    if DEVICE.capture is not None:
        DEVICE.refuse([DEVICE.capture], name.removeprefix("aten::"))
    waiting.wait_for_stream(DEVICE.stream)


def _has_mask(args: Any, kwargs: dict[str, Any], traits: Operator) -> bool:
    """True for an index by a boolean mask, which must count its elements on the host."""
    if traits.name not in ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"):
        return traits.name == "aten::repeat_interleave" and len(args) == 1 and kwargs.get("output_size") is None
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])


def _refuse_strangers(strangers: list[torch.Tensor], traits: Operator) -> None:
    if traits.name in ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_"):
        return  # Indices on the CPU are copied to the device first.
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        f"(when checking arguments of {traits.name.replace('::', '.')})",
    )
