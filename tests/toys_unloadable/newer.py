"""A file that needs a name which this torch does not have."""

from torch.cuda import a_name_of_later


def eager():
    """One."""
    yield "replay", 1


def bug():
    """One."""
    yield "replay", a_name_of_later
