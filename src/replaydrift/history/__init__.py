"""History through asv: a repository whose commits are torch releases, result files derived from the store, and asv's site."""

from __future__ import annotations

from replaydrift.history.site import publish

__all__ = ["publish"]
