"""What the model needs to know of an aten operator, read once from its schema and tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

# Sync points that no tag names: they read a result on the host to decide how to go on.
_SYNCING = {
    "aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::is_nonzero", "aten::masked_select", "aten::unique_dim",
    "aten::_unique2", "aten::unique_consecutive", "aten::bincount", "aten::histc", "aten::multinomial",
}  # fmt: skip
# Their tags speak of the worst case: only masks, and repeats without a total, are counted on the host. `dispatch` looks at the arguments.
_DEPENDS_ON_ARGUMENTS = {"aten::index", "aten::_unsafe_index", "aten::repeat_interleave"}
_NOT_SYNCING = {"aten::histc", "aten::multinomial"} | _DEPENDS_ON_ARGUMENTS
_RANDOM_WITHOUT_TAG = {"aten::native_dropout"}


@dataclass(frozen=True)
class Operator:
    """An operator's traits."""

    name: str
    returns_arguments: tuple[int | None, ...]  # for each return, the position of the argument it is, or None
    argument_names: tuple[str, ...]
    is_view: bool
    syncs: bool
    random: bool
    mutates: bool
    has_device: bool

    @property
    def only_arguments(self) -> bool:
        """True where every return is one of the arguments: in-place and out= forms, and forms that return nothing."""
        return all(position is not None for position in self.returns_arguments)


_KNOWN: dict[Any, Operator] = {}


def operator(func: Any) -> Operator:
    """The traits of an overload such as `aten.add.Tensor`."""
    known = _KNOWN.get(func)
    if known is None:
        known = _KNOWN[func] = _read(func)
    return known


def _read(func: Any) -> Operator:
    schema = func._schema
    tags = set(getattr(func, "tags", ()))
    written = {}
    for position, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is not None and info.is_write:
            for name in info.before_set:
                written[name] = position
    returns: list[int | None] = []
    viewing = bool(schema.returns)
    for result in schema.returns:
        info = result.alias_info
        returns.append(next((written[name] for name in info.before_set if name in written), None) if info else None)
        viewing = viewing and info is not None and not info.is_write
    name = schema.name
    data_dependent = bool(tags & {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape})
    return Operator(
        name=name,
        returns_arguments=tuple(returns),
        argument_names=tuple(argument.name for argument in schema.arguments),
        is_view=viewing
        or torch.Tag.inplace_view in tags
        or name in ("aten::detach", "aten::alias", "aten::lift_fresh", "aten::_reshape_alias", "aten::_unsafe_view", "aten::split"),
        syncs=(data_dependent or name in _SYNCING) and name not in _NOT_SYNCING,
        random=torch.Tag.nondeterministic_seeded in tags or name in _RANDOM_WITHOUT_TAG,
        mutates=schema.is_mutable,
        has_device=any(argument.name == "device" for argument in schema.arguments),
    )
