"""The errors a person may meet; every one says what was found, what was expected and what to do next.

ReplaydriftError
├── LibraryError     a case file or groups.toml cannot be used; nothing was run
├── ReleaseError     a torch release that the table does not know, or a name that is none
├── StoreError       results that cannot be read or may not be written
├── RunError         a sweep that could not start or go on; what was finished is kept
└── TraceError       lengths of requests that cannot be read, or a policy or cost curve that cannot be had for them
"""

from __future__ import annotations


class ReplaydriftError(Exception):
    """You asked for something that cannot be done as asked; the message says what to do instead."""


class LibraryError(ReplaydriftError):
    """A case file, or groups.toml beside it, breaks a rule of the library. All broken rules are listed at once."""


class ReleaseError(ReplaydriftError):
    """The text is no torch release, or torch-releases.toml does not list it."""


class StoreError(ReplaydriftError):
    """A file under results/ is damaged, foreign, of an unknown schema, or may not take what you want to write."""


class RunError(ReplaydriftError):
    """A sweep could not start, or had to stop; the attempts that ended before are kept in its journal."""


class TraceError(ReplaydriftError):
    """Lengths of requests cannot be read, or no policy of that name, or no cost of that machine, is to be had for them."""
