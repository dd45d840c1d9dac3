"""The report as static pages: they open from disk, load nothing from a network, and say on every table what executed it."""

from __future__ import annotations

from replaydrift.report.html.inputs import Cost
from replaydrift.report.html.site import write

__all__ = ["Cost", "write"]
