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

from replaydrift.model import accumulation, blas, conditionals, copies, random, waiting
from replaydrift.model.arena import alias, on_device
from replaydrift.model.clock import CLOCK
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.failures import lack
from replaydrift.model.forms import Form, form_of, forms_of_results, map_tensors, tensors_in
from replaydrift.model.lacking import only_device
from replaydrift.model.operators import Operator, operator
from replaydrift.model.pinned import PINNED
from replaydrift.model.submission import submit

aten = torch.ops.aten
_CPU = torch.device("cpu")
# Operators with a way of their own through the model; filled at the end of this module.
_SPECIAL: dict[str, Callable[..., Any]] = {}


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
    special = _SPECIAL.get(traits.name)
    if special is not None:
        return special(func, args, kwargs, traits)
    tensors = tensors_in(args)
    if kwargs:
        tensors += tensors_in(kwargs)
    if not _works_on_device(tensors, kwargs, traits):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return _on_host(func, args, kwargs)
    return on_device_run(func, args, kwargs, traits, tensors)


def _works_on_device(tensors: list[torch.Tensor], kwargs: dict[str, Any], traits: Operator) -> bool:
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


def _on_host(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
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


def execute(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator, plain: Any = None) -> Any:
    """The results of one kernel on the current stream, in time. `plain` is the operator where `func` is one made for this call."""
    stream, capture = DEVICE.stream, DEVICE.capture
    if capture is None and CLOCK.idle(stream):
        results = place(func(*args, **kwargs))
        if DEVICE.observer is not None:
            DEVICE.observer.submitted(traits.name, stream, None, _read(args, kwargs), _written(args, kwargs, traits, results))
        CLOCK.occupy(stream, COSTS.of_bytes(_bytes_touched(args, results)))
        return results
    return _later(func, args, kwargs, traits, plain or func)


def place(results: Any) -> Any:
    """The results with every fresh tensor moved into a block of its own; those that lie on the device already stay."""
    if isinstance(results, torch.Tensor):
        if on_device(results):
            return results
        form = form_of(results)
        return DEVICE.new_tensor(form.dtype, form.size, form.stride, form.nbytes).copy_(results)
    if isinstance(results, list | tuple):
        placed = [place(item) for item in results]
        return placed if isinstance(results, list) else tuple(placed)
    return results


def _later(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator, plain: Any) -> Any:
    """Queue or record the kernel: its pointers are frozen now, its results get their blocks now, it runs when its time comes."""
    frozen_args, frozen_kwargs = map_tensors(args, freeze), map_tensors(kwargs, freeze)
    if traits.only_arguments:
        names = traits.argument_names
        given = [args[p] if p < len(args) else kwargs.get(names[p]) for p in traits.returns_arguments if p is not None]
        results: Any = given[0] if len(given) == 1 else tuple(given)
        _grow_outputs(func, args, kwargs, given)
        if traits.name.endswith(".out") or kwargs:
            frozen_args, frozen_kwargs = map_tensors(args, freeze), map_tensors(kwargs, freeze)

        def work() -> None:
            func(*frozen_args, **frozen_kwargs)

        outputs: list[torch.Tensor] = [tensor for tensor in given if isinstance(tensor, torch.Tensor)]
    else:
        forms = random.undisturbed(forms_of_results, plain, args, kwargs) if traits.random else forms_of_results(plain, args, kwargs)
        results = _new_results(forms)
        outputs = tensors_in(results)
        targets = [alias(tensor) for tensor in outputs]

        def work() -> None:
            for target, source in zip(targets, tensors_in(func(*frozen_args, **frozen_kwargs)), strict=True):
                target.copy_(source)

    submit(traits.name, work, COSTS.of_bytes(_bytes_touched(args, results)), reads=_read(args, kwargs), writes=outputs)
    return results if traits.returns_arguments else None


def _read(args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    return tensors_in((args, {name: value for name, value in kwargs.items() if name != "out"} if "out" in kwargs else kwargs))


def _written(args: Any, kwargs: dict[str, Any], traits: Operator, results: Any) -> list[torch.Tensor]:
    if not traits.only_arguments:
        return tensors_in(results)
    names = traits.argument_names
    return tensors_in([args[p] if p < len(args) else kwargs.get(names[p]) for p in traits.returns_arguments if p is not None])


def freeze(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel launch keeps of an argument: an address, or the value of a number that was a CPU tensor."""
    return alias(tensor) if on_device(tensor) else tensor.clone()


def _new_results(forms: Any) -> Any:
    if isinstance(forms, Form):
        return DEVICE.new_tensor(forms.dtype, forms.size, forms.stride, forms.nbytes)
    if isinstance(forms, list | tuple):
        made = [_new_results(form) for form in forms]
        return made if isinstance(forms, list) else tuple(made)
    return forms


def _grow_outputs(func: Any, args: Any, kwargs: dict[str, Any], given: list[Any]) -> None:
    """Give an empty `out=` the room that the result needs, as its resize would have."""
    for tensor in given:
        if isinstance(tensor, torch.Tensor) and tensor.numel() == 0 and tensor.dim() == 1 and len(given) == 1 and "out" in kwargs:
            form = forms_of_results(func, args, {**kwargs, "out": torch.empty(0, dtype=tensor.dtype)})
            if isinstance(form, Form) and form.nbytes:
                tensor.set_(DEVICE.new_tensor(form.dtype, form.size, form.stride, form.nbytes))


def _bytes_touched(args: Any, results: Any) -> int:
    total = 0
    for tensor in tensors_in(args):
        total += tensor.numel() * tensor.element_size()
    for tensor in tensors_in(results):
        total += tensor.numel() * tensor.element_size()
    return total


def synchronise_for(name: str) -> None:
    """Wait as an operator does that reads on the host; in a capture that is an error, and the capture is lost."""
    if DEVICE.capture is not None:
        waiting.refuse([DEVICE.capture], name.removeprefix("aten::"))
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


def _index(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Indexing: indices that lie on the CPU are copied over first, a pageable copy."""
    if not on_device(args[0]):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return func(*args, **kwargs)
    indices = [
        copies.to_device(index, non_blocking=False) if isinstance(index, torch.Tensor) and not on_device(index) else index
        for index in args[1]
    ]
    args = (args[0], indices, *args[2:])
    return on_device_run(func, args, kwargs, traits, tensors_in(args))


def _where(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """`torch.where`: a tensor of the CPU without dimensions is copied over first, a pageable copy."""
    tensors = tensors_in(args)
    if not any(on_device(tensor) for tensor in tensors):
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return func(*args, **kwargs)
    args = tuple(
        copies.to_device(value, non_blocking=False) if isinstance(value, torch.Tensor) and not value.dim() and not on_device(value) else value
        for value in args
    )
    return on_device_run(func, args, kwargs, traits, tensors_in(args))


def _empty(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Memory without a kernel: a block, holding what lay there."""
    tensors = tensors_in(args)
    if not _works_on_device(tensors, kwargs, traits):
        return _on_host(func, args, kwargs)
    plain = {**kwargs, "device": _CPU, "pin_memory": False} if traits.has_device else kwargs
    return _new_results(forms_of_results(func, args, plain, virtual=True))


def _resize(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    """Other sizes in place: where the storage is too small the tensor gets a block of its own, with the old elements copied over."""
    tensor, size = args[0], tuple(args[1])
    if not on_device(tensor):
        return func(*args, **kwargs)
    form = forms_of_results(aten.empty.memory_format, (size,), {"dtype": tensor.dtype, "device": _CPU, **kwargs}, virtual=True)
    if form.nbytes + tensor.storage_offset() * tensor.element_size() <= tensor.untyped_storage().nbytes():
        return func(*args, **kwargs)
    grown = DEVICE.new_tensor(form.dtype, form.size, form.stride, form.nbytes)
    if tensor.numel():
        kept = torch.as_strided(grown, tensor.size(), tensor.stride())
        execute(aten.copy_.default, (kept, tensor), {}, operator(aten.copy_.default))
    return tensor.set_(grown)


def _copy(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    target, source = args[0], args[1]
    non_blocking = args[2] if len(args) > 2 else kwargs.get("non_blocking", False)
    if on_device(target) and on_device(source):
        return execute(func, args, kwargs, traits)
    if on_device(target):
        return copies.into_device(target, source, non_blocking=non_blocking)
    if on_device(source):
        return copies.into_host(target, source, non_blocking=non_blocking)
    if DEVICE.observer is not None:
        DEVICE.observer.host_ran(args, kwargs, traits)
    return func(*args, **kwargs)


def _to_copy(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator) -> Any:
    source, asked = args[0], kwargs.get("device")
    here = on_device(source)
    there = here if asked is None or (asked.type == "cpu" and here and not STATE.asked_for_cpu) else asked.type == "cuda"
    rest = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory", "non_blocking")}
    if here and there:
        return execute(func, args, rest, traits)
    if not here and not there:
        if DEVICE.observer is not None:
            DEVICE.observer.host_ran(args, kwargs, traits)
        return _on_host(func, args, kwargs)
    non_blocking = kwargs.get("non_blocking", False)
    if there:
        return copies.to_device(func(source, **rest), non_blocking=non_blocking, original=source)
    return copies.to_host(source, rest, func, non_blocking=non_blocking)


_SPECIAL.update({
    "aten::copy_": _copy,
    "aten::resize_": _resize,
    "aten::_to_copy": _to_copy,
    "aten::empty": _empty,
    "aten::empty_strided": _empty,
    "aten::empty_like": _empty,
    "aten::new_empty": _empty,
    "aten::new_empty_strided": _empty,
    "aten::where": _where,
    "aten::index": _index,
    "aten::index_put": _index,
    "aten::index_put_": _index,
    "aten::_index_put_impl_": _index,
})  # fmt: skip
