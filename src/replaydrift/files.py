"""Files of JSON that a person can review: written whole or not at all, sorted, one line a leaf; read with a schema or refused."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from replaydrift.errors import StoreError

_WIDTH: Final = 120
_FLAT_DEPTH: Final = 2  # A cell with a list in it stays on one line; a whole attempt does not.


def write_whole(path: Path, text: str) -> Path:
    """The path, holding `text` entirely or untouched: StoreError (disk full, no permission) leaves no partial file behind."""
    scratch: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except OSError as error:
        if scratch is not None:
            with contextlib.suppress(OSError):
                Path(scratch).unlink()
        raise StoreError(
            f"cannot write {str(path)!r}: {error.strerror or error}; what was there is unchanged. "
            "Make room or give the right to write, or choose another folder, then run the same command again (a sweep with --resume)",
        ) from error
    return path


def to_text(tree: Any, *, samples: bool = False) -> str:
    """The tree as strict JSON: sorted keys, one line a leaf that fits in 120 columns, a line break at the end.

    With `samples` a list of numbers alone stays on one line, however long.
    """
    return _text(tree, "", 0, samples=samples) + "\n"


def _text(tree: Any, indent: str, used: int, *, samples: bool) -> str:
    flat = json.dumps(tree, sort_keys=True, ensure_ascii=False, allow_nan=False)
    if not isinstance(tree, dict | list) or not tree:
        return flat
    if samples and isinstance(tree, list) and all(isinstance(item, int | float) for item in tree):
        return flat
    if _depth(tree) <= _FLAT_DEPTH and len(indent) + used + len(flat) <= _WIDTH:
        return flat
    deeper = indent + " "
    if isinstance(tree, dict):
        keys = [(json.dumps(key, ensure_ascii=False), tree[key]) for key in sorted(tree)]
        lines = [f"{deeper}{key}: {_text(item, deeper, len(key) + 2, samples=samples)}" for key, item in keys]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + _text(item, deeper, 0, samples=samples) for item in tree) + f"\n{indent}]"


def _depth(tree: Any) -> int:
    if not isinstance(tree, dict | list):
        return 0
    return 1 + max((_depth(item) for item in (tree.values() if isinstance(tree, dict) else tree)), default=0)


def read_tree(path: Path, newest: int) -> dict[str, Any]:
    """The JSON object of a file whose schema is at most `newest`; StoreError where it is damaged, foreign or newer."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_json)
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error.strerror or error}; give the right to read it, or move it away") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{str(path)!r} cannot be read as JSON ({error}): it is cut off or damaged; restore it, or delete it and run again"
        ) from error
    if not isinstance(tree, dict) or type(tree.get("schema")) is not int:
        raise StoreError(f"{str(path)!r} is none of replaydrift's files (it has no schema number): move it out of the store")
    if tree["schema"] > newest or tree["schema"] < 1:
        raise StoreError(
            f"{str(path)!r} has schema {tree['schema']}, but this replaydrift knows 1 to {newest}: upgrade replaydrift to read it",
        )
    return tree


def _no_json(word: str) -> None:
    """Python's reader takes NaN and Infinity, which are no JSON and which the store never writes."""
    raise ValueError(f"{word} is no JSON")
