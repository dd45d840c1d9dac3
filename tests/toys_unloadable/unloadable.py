"""A file that reads as Python and does not load."""

import a_module_that_is_not_there


def eager():
    """One."""
    yield "replay", 1


def bug():
    """One."""
    yield "replay", a_module_that_is_not_there.one
