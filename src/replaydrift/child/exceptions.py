"""The whole chain of an exception as plain JSON: what a user sees first, its causes after it."""

from __future__ import annotations

import os
import traceback
from typing import Any, Final

from replaydrift.child.encoding import clean

LONGEST_TEXT: Final = 16 * 1024
LONGEST_CHAIN: Final = 50


def chain_of(error: BaseException, path: str) -> list[dict[str, Any]]:
    """One entry a link: class (with its module unless builtin), whole text, and `where` in the file `path` it was raised.

    The chain follows `__cause__`, else `__context__` unless `raise … from None` hid it, as a traceback does.
    """
    links: list[dict[str, Any]] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(links) < LONGEST_CHAIN:
        seen.add(id(link))
        links.append({"class": class_name(link), "text": text_of(link), "where": where(link, path)})
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return links


def class_name(error: BaseException) -> str:
    """`RuntimeError`, `torch.AcceleratorError`."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def text_of(error: BaseException) -> str:
    """The exception's text; beyond 16 KiB its beginning and end; a note where the text itself raises."""
    try:
        text = clean(str(error))
    except BaseException as second:  # noqa: BLE001 - an unprintable exception must still be reported
        return f"(unprintable: its __str__ raised {class_name(second)})"
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


def where(error: BaseException, path: str) -> str | None:
    """`shared_pool.py:31`, the innermost place in the case's own file; None where the traceback does not pass it."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path:
            found = f"{os.path.basename(path)}:{line}"
    if isinstance(error, SyntaxError) and error.filename == path:
        found = f"{os.path.basename(path)}:{error.lineno}"
    return found
