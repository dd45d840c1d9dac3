"""Toys that behave otherwise on another release of the fake torch.

Mechanism: frozen choice
"""

import os

import torch

NEW = torch.__version__.startswith(("2.14", "2.15"))


def _turn(name):
    """How often `name` ran before on this release: a line a run in the file TRACE."""
    path, line = os.environ.get("TRACE"), f"{name} on {torch.__version__}\n"
    if not path:
        return 0
    with open(path, "a+") as trace:
        trace.seek(0)
        before = trace.read().count(line)
        trace.write(line)
    return before


def eager():
    """One."""
    yield "replay", 1


def bug():
    """Two on every release."""
    _turn("bug")
    yield "replay", 2


def fix_new():
    """It raises before 2.14."""
    _turn("fix_new")
    if not NEW:
        raise RuntimeError("no state")
    yield "replay", 1


def fix_there_and_back():
    """It is wrong on 2.12 and 2.14 alone."""
    yield "replay", 2 if torch.__version__.startswith(("2.12", "2.14")) else 1


def fix_reworded():
    """It raises on every release, since 2.13 in other words."""
    old = torch.__version__.startswith(("2.11", "2.12"))
    raise RuntimeError("no state" if old else "the generator has no state")
    yield


def fix_mixed():
    """It is wrong once, at its second run on a new release."""
    yield "replay", 2 if _turn("fix_mixed") == 1 and NEW else 1
