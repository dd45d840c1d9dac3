"""What this computer has that decides what can run on it: GPUs, driver, interpreters, disk. Standard library only."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# The Pythons this package runs on; a release may have wheels for others.
PYTHONS: Final = ((3, 10), (3, 11), (3, 12), (3, 13))
_ASK_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Host:
    """What matters for an installation: GPUs by name, driver, interpreters by (major, minor), free disk in megabytes."""

    gpus: tuple[str, ...] = ()
    driver: str | None = None
    pythons: Mapping[tuple[int, int], str] = field(default_factory=dict)
    own: tuple[int, int] = (sys.version_info[0], sys.version_info[1])
    free_mb: int = 0
    architecture: str = "x86_64"

    @property
    def has_gpu(self) -> bool:
        """True where an NVIDIA driver is loaded; CUDA wheels are worth their size only then."""
        return self.driver is not None


def look(root: Path) -> Host:
    """The facts of this computer; disk space is that of `root`, where environments will be."""
    gpus, driver = find_gpus()
    return Host(
        gpus=gpus,
        driver=driver,
        pythons=find_pythons(),
        free_mb=shutil.disk_usage(root).free // 1_000_000,
        architecture=platform.machine(),
    )


def find_gpus() -> tuple[tuple[str, ...], str | None]:
    """Names of the NVIDIA GPUs and the driver's version; nothing and None where there is no driver."""
    rows = ask_nvidia_smi("--query-gpu=name,driver_version")
    if rows:
        return tuple(row[0] for row in rows), rows[0][1]
    # In a container nvidia-smi may be missing while the driver is loaded all the same.
    try:
        found = re.search(r"Kernel Module.*?(\d+(?:\.\d+)+)", Path("/proc/driver/nvidia/version").read_text(encoding="utf-8"))
    except OSError:
        return (), None
    return (), found[1] if found else None


def ask_nvidia_smi(query: str) -> list[list[str]]:
    """The rows that nvidia-smi prints for a query, split into fields; nothing where it is missing or fails."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=_ASK_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    if answer.returncode != 0:
        return []
    return [[part.strip() for part in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]


def find_pythons() -> dict[tuple[int, int], str]:
    """The interpreters of this computer by version, the one that runs this first; each was started and answered."""
    found = {(sys.version_info[0], sys.version_info[1]): sys.executable}
    for version in PYTHONS:
        for path in _candidates(version):
            if version not in found and _is_python(path, version):
                found[version] = str(path)
    return {version: found[version] for version in sorted(found)}


def answers(url: str, seconds: float = 3) -> bool:
    """True where `url` answers within `seconds`; a thread, since looking up a name cannot be given a time limit."""
    good: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=seconds) as response:  # noqa: S310 - https, and ours or a person's
                good.append(response.status == 200)
        except (OSError, ValueError):
            good.append(False)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(good) and good[0]


def _candidates(version: tuple[int, int]) -> Iterable[Path]:
    name = f"python{version[0]}.{version[1]}"
    for folder in os.get_exec_path():
        yield Path(folder) / name
    # pyenv puts only the chosen version on the path.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(pyenv.glob(f"{version[0]}.{version[1]}.*/bin/{name}"), reverse=True)


def _is_python(path: Path, version: tuple[int, int]) -> bool:
    """True where `path` starts and says it is CPython of this version: a shim may be there with nothing behind it."""
    if not os.access(path, os.X_OK):
        return False
    ask = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(path), "-c", ask], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.split() == ["cpython", str(version[0]), str(version[1])]
