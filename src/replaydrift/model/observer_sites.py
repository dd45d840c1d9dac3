"""Lines of the user's script: which one is at work now, beneath torch's frames and the model's."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass
from types import FrameType
from typing import Final

import torch

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_STANDARD: Final = tuple({path + os.sep for path in (sysconfig.get_path("stdlib"), os.path.dirname(os.path.abspath(os.__file__)))})
_USER, _LIBRARY, _INNER = range(3)
_kinds: dict[str, int] = {}
_sites: dict[tuple[str, int, str], Site] = {}


@dataclass(frozen=True)
class Site:
    """A line of code, and the function that it stands in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE: Final = Site("<unknown>", 0, "")


def here() -> Site:
    """The innermost line of the user's own code that is running; of an installed package where none of the user's is."""
    frame: FrameType | None = sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        kind = _kind(frame.f_code.co_filename)
        if kind == _USER:
            return _site(frame)
        if kind == _LIBRARY and library is None:
            library = frame
        frame = frame.f_back
    return NOWHERE if library is None else _site(library)


def _site(frame: FrameType) -> Site:
    key = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
    known = _sites.get(key)
    if known is None:
        known = _sites[key] = Site(*key)
    return known


def _kind(file: str) -> int:
    kind = _kinds.get(file)
    if kind is None:
        path = os.path.abspath(file) if not file.startswith("<") else file
        if path.startswith((_TORCH, _PACKAGE)) or file.startswith("<frozen"):
            kind = _INNER
        elif f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
            kind = _LIBRARY
        else:
            kind = _INNER if path.startswith(_STANDARD) else _USER
        _kinds[file] = kind
    return kind
