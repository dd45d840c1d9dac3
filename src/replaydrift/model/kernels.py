"""One kernel in time: run now, queued behind what its stream still does, or recorded in a graph, with results in blocks of their own."""

from __future__ import annotations

from typing import Any

import torch

from replaydrift.model import loading, random
from replaydrift.model.arena import alias, on_device
from replaydrift.model.clock import CLOCK
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.forms import Form, form_of, forms_of_results, map_tensors, tensors_in
from replaydrift.model.operators import Operator
from replaydrift.model.submission import submit


def execute(func: Any, args: Any, kwargs: dict[str, Any], traits: Operator, plain: Any = None) -> Any:
    """The results of one kernel on the current stream, in time. `plain` is the operator where `func` is one made for this call."""
    stream, capture = DEVICE.stream, DEVICE.capture
    loading.load(traits.name)
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
        results = new_results(forms)
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


def new_results(forms: Any) -> Any:
    """Tensors of these forms in blocks of their own, nested as the forms are."""
    if isinstance(forms, Form):
        return DEVICE.new_tensor(forms.dtype, forms.size, forms.stride, forms.nbytes)
    if isinstance(forms, list | tuple):
        made = [new_results(form) for form in forms]
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
