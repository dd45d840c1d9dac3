"""What a case shows, as plain JSON: the forms of `replaydrift.values`, made at the moment the value is yielded."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from replaydrift.strip import STEPS
from replaydrift.values import LARGEST_VALUE_BYTES, Value, encode_float

DEEPEST: Final = 32
_ACCEPTED: Final = "None, bool, int, float, complex, str, a tensor, or a list, tuple or dict of those"


class NotStorableError(Exception):
    """What a case yielded cannot be kept; the text says what was found, what was expected and what to do."""


def encode_yield(item: object) -> tuple[str, Value]:
    """Step and encoded value of what a generator yielded; NotStorableError where it is no (step, value) of known form."""
    if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], str):
        raise NotStorableError(f"the case yielded {_brief(item)}: expected a pair (step, value) whose step is a str, such as ('replay', y)")
    step = clean(item[0])
    meant = _misspelt(step)
    if meant:
        raise NotStorableError(f"the case yielded the unknown step {step!r}: write {meant!r}, or give evidence another name")
    try:
        value = encode(item[1])
        size = len(json.dumps(value))
    except NotStorableError as error:
        raise NotStorableError(f"the value of step {step!r} cannot be stored: {error}") from None
    except RecursionError:
        raise NotStorableError(f"the value of step {step!r} cannot be stored: it is nested too deeply") from None
    if size > LARGEST_VALUE_BYTES:
        raise NotStorableError(f"the value of step {step!r} cannot be stored: {_too_large(f'{size} bytes')}")
    return step, value


def encode(value: object, depth: int = 0) -> Value:
    """The value as plain JSON: a tensor of one element as a number, a larger one as nested lists. Reading it waits for the GPU."""
    if depth > DEEPEST:
        raise NotStorableError(f"it is nested more than {DEEPEST} deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return encode_float(float(value))
    if isinstance(value, complex):
        return {"complex": [encode_float(value.real), encode_float(value.imag)]}
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        if len(value) > LARGEST_VALUE_BYTES // 2:
            raise NotStorableError(_too_large(f"{len(value)} items"))
        return [encode(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {_key(key): encode(item, depth + 1) for key, item in value.items()}
    if _is_tensor(value):
        return encode(_plain(value), depth + 1)
    raise NotStorableError(f"found {_brief(value)}, expected {_ACCEPTED}")


def clean(text: str) -> str:
    """The text in a form that UTF-8 can hold: a lone surrogate becomes its escape."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")  # Where nothing has imported torch, nothing is a tensor.
    return torch is not None and isinstance(value, torch.Tensor)


def _plain(tensor: Any) -> object:
    """A number for one element, nested lists for another number of elements."""
    elements = tensor.numel()
    if elements > LARGEST_VALUE_BYTES // 2:  # Checked first, so that gigabytes are never copied to the host.
        raise NotStorableError(_too_large(f"{elements} elements"))
    if tensor.device.type == "meta":
        raise NotStorableError("a tensor on the device 'meta' has no values: yield a tensor that holds some")
    tensor = tensor.detach()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() == 1:
        tensor = tensor.float()  # Eight-bit floats have no way to Python of their own on older releases.
    return tensor.item() if elements == 1 else tensor.tolist()


def _key(key: object) -> str:
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise NotStorableError(f"found the key {_brief(key)} in a dict, expected str or int")
    return clean(str(key))


def _too_large(found: str) -> str:
    return f"found {found}, expected at most {LARGEST_VALUE_BYTES} bytes as JSON: yield a slice, a sum or a count of what differs instead"


def _misspelt(step: str) -> str | None:
    """The step that was meant by `Replay`, `replays` or `warm_up`; None for a step, and for a name of its own."""
    if step in STEPS:
        return None
    letters = "".join(letter for letter in step.lower() if letter.isalpha())
    return next((known for known in STEPS if letters.rstrip("s") == known), None)


def _brief(value: object) -> str:
    """Type and beginning of a value, whatever its repr does."""
    try:
        text = clean(repr(value))
    except Exception:  # noqa: BLE001 - a hostile repr is the case's own affair
        text = "(its repr raises)"
    kind = type(value).__name__
    return f"{text[:80]}{'…' if len(text) > 80 else ''} of type {kind!r}"
