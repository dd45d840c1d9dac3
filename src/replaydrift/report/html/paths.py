"""Where pages are, relative to the report's folder: names from the store become safe file names here and nowhere else."""

from __future__ import annotations

import re

from replaydrift.releases import Release

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def slug(text: str) -> str:
    """The text as a file name: letters, digits, dots, underscores and dashes, never hidden and never a way out of the folder."""
    return _UNSAFE.sub("-", text).strip(".-") or "unnamed"


def case_page(name: str) -> str:
    """`cases/shared-pool--bug.html` for `shared-pool/bug`."""
    return f"cases/{slug(name.replace('/', '--', 1))}.html"


def release_page(release: str) -> str:
    """`releases/2.14.1-cu130.html` for `2.14.1+cu130`."""
    return f"releases/{slug(release)}.html"


def tag(version: str) -> str:
    """The short name of a release for a narrow column: `2.14.1` of `2.14.1+cu130`."""
    return Release.parse(version).version


def build(version: str) -> str:
    """The build of a release, `cu130` of `2.14.1+cu130`; empty where it names none."""
    return Release.parse(version).build or ""
