"""Whether this machine's NVIDIA driver is new enough for a wheel's CUDA. Standard library only."""

from __future__ import annotations

import re

from replaydrift.errors import ReleaseError
from replaydrift.host import Host
from replaydrift.releases import Entry, Release, Table


def check_driver(
    release: Release, build: str | None, entry: Entry | None, host: Host, table: Table, *, on_gpu: bool,
) -> None:  # fmt: skip
    """ReleaseError where this machine's driver is too old for the wheel's CUDA, with the builds that it would run."""
    lowest = lowest_driver(build, entry, table)
    if not on_gpu or host.driver is None or lowest is None or newer_or_same(host.driver, lowest):
        return
    others = [
        f"{release.version}+{other}"
        for other in (entry.builds if entry else ())
        if other.startswith("cu") and newer_or_same(host.driver, lowest_driver(other, entry, table) or "9999")
    ]
    way_out = f"take another build: {', '.join(others)}" if others else "upgrade the driver"
    raise ReleaseError(
        f"{release} cannot run here: its CUDA needs driver {lowest} or newer, this machine has {host.driver}; "
        f"{way_out}, or run the CPU model with --engine model",
    )


def lowest_driver(build: str | None, entry: Entry | None, table: Table) -> str | None:
    """The lowest driver for a build; None for a CPU wheel or where it is not known. It depends on CUDA's major alone."""
    if build is None and entry is not None:
        return entry.driver
    major = re.fullmatch(r"cu(\d\d)\d", build or "")
    known = {other.cuda.split(".")[0]: other.driver for other in table.entries}
    return known.get(major[1]) if major else None


def newer_or_same(version: str, lowest: str) -> bool:
    """True where a driver of this version is at least `lowest`, compared number by number."""
    found, needed = (tuple(int(part) for part in re.findall(r"\d+", text)) for text in (version, lowest))
    return found[: len(needed)] >= needed
