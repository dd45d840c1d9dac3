"""Toys that take a moment, so that a sweep can be stopped in the middle.

Each writes its name into the file TRACE, so that a test sees what ran, when, and how often.
"""

import os
import time


def _traced(name, seconds=0.1):
    path = os.environ.get("TRACE")
    for word in ("begins", "ends"):
        if path:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, f"{name} {word}\n".encode())
            os.close(descriptor)
        if word == "begins":
            time.sleep(seconds)


def eager():
    """One."""
    _traced("eager")
    yield "replay", 1


def bug():
    """Two."""
    _traced("bug")
    yield "replay", 2


def fix_a():
    """One."""
    _traced("fix_a")
    yield "replay", 1


def fix_b():
    """One."""
    _traced("fix_b")
    yield "replay", 1


def fix_alone():
    """It wants everything for itself."""
    _traced("fix_alone")
    yield "replay", 1
