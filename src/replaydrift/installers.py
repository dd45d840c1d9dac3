"""What is asked of pip, or of uv: which wheel it would take, and to install a plan. Standard library only."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from replaydrift.errors import ReleaseError
from replaydrift.installing import Plan, with_wheel
from replaydrift.releases import Table


@dataclass(frozen=True, slots=True)
class Wheel:
    """The wheel of torch that pip would take: its URL, its bytes where it is a file here, and what it requires."""

    url: str
    size: int | None = None
    requires: tuple[str, ...] = ()


def taken_by_pip(planned: Plan, python: str, seconds: float = 120) -> Wheel:
    """The wheel of torch that pip would take; nothing is installed. ReleaseError with pip's own words where it finds none."""
    ask = [python, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet", "--disable-pip-version-check"]
    try:
        answer = subprocess.run(
            [*ask, "--report", "-", *planned.options, planned.requirements[0]],
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ReleaseError(f"{planned.release} cannot be installed: pip gave no answer within {seconds:.0f} s") from None
    if answer.returncode != 0:
        raise ReleaseError(f"{planned.release} cannot be installed: pip says {_reason(answer.stderr)!r}")
    found = json.loads(answer.stdout)["install"][0]
    url = str(found["download_info"]["url"])
    parts = urllib.parse.urlsplit(url)
    size = Path(urllib.parse.unquote(parts.path)).stat().st_size if parts.scheme == "file" else None
    required = found.get("metadata", {}).get("requires_dist", ())
    return Wheel(url, size, tuple(text for text in required if "extra ==" not in text))


def settled(planned: Plan, python: str, table: Table) -> tuple[Plan, Wheel]:
    """The plan, corrected by the wheel that pip would take for it, and that wheel."""
    wheel = taken_by_pip(planned, python)
    corrected = with_wheel(planned, wheel.url, wheel.size, table)
    if corrected.requirements != planned.requirements:  # A CPU wheel is passed over: another one says what it requires.
        wheel = taken_by_pip(corrected, python)
    return corrected, wheel


def commands(planned: Plan, python: str, wheel: Wheel | None = None, uv: str | None = None) -> list[list[str]]:
    """The commands that install the plan into the environment of `python`, with pip or with the given uv, in order.

    One command, but where disk is short: then one for each package that the wheel requires, and torch last; what is there
    in the end is the same. Nothing goes to the installer's cache: what is kept is what the plan says, and removing the
    environment frees it.
    """
    if uv is None:
        start = [python, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", *planned.options]
        first = wheel.requires if wheel is not None and planned.one_by_one else ()
        return [*([*start, text] for text in first), [*start, *planned.requirements]]
    # uv asks one index after the other by default; like pip, it has to look for torch's dependencies in all of them.
    options = ["--prerelease=allow" if option == "--pre" else option for option in planned.options]
    start = [uv, "pip", "install", "--python", python, "--no-cache", "--index-strategy", "unsafe-best-match"]
    return [[*start, *options, *planned.requirements]]


@contextmanager
def scratch(environment: Path) -> Iterator[dict[str, str]]:
    """Variables that make an installer keep what it fetches beside the environment, on the disk whose room was looked at.

    The folder for temporary files may be a small one in memory. It is gone again afterwards.
    """
    folder = environment / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield {"TMPDIR": str(folder.resolve())}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reason(words: str) -> str:
    """What of pip's words says why: its last error, or the constraint that stands in the way."""
    lines = [line.strip() for line in words.splitlines()]
    constraints = [line for line in lines if "(constraint)" in line]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (constraints or errors or ["nothing"])[-1]
