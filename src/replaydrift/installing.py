"""What to install for a release on this host, said in plain words before anything is installed.

Two steps: `look` gathers the facts of the host, `plan` decides on them and is pure. Standard library only: noxfile.py
uses this before anything is installed.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from replaydrift.drivers import check_driver
from replaydrift.errors import ReleaseError
from replaydrift.host import PYTHONS, Host
from replaydrift.model.rules import OLDEST, knows
from replaydrift.releases import Entry, Release, Table

PYTORCH_INDEX: Final = "https://download.pytorch.org/whl"
# An environment weighs this many times its download: measured between 1.83 (2.11.0) and 1.99 (2.0.1).
KEPT_PER_DOWNLOAD: Final = 1.9
# Installed one requirement after another, torch comes last, and of the wheels only its own lies beside all that is unpacked: 0.18 of the
# download for 2.14.1, where 5.5 GB of disk were in use at most, and no more than 0.3 for any release of the table. What comes in one
# requirement (`cuda-toolkit` brings a third of the download) comes while most of the disk is free.
LAST_PER_DOWNLOAD: Final = 0.3
_SHORT: Final = "disk is short: one requirement after another, torch last, so that few wheels lie beside what is unpacked"
_REQUIRES_TORCH_BEFORE: Final = (2, 1, 0)
# torch before 2.3 was built against NumPy 1 and warns at each import beside NumPy 2.
_NUMPY_2: Final = (2, 3, 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """How to install one release: interpreter, requirements, options of the installer, and what that costs in megabytes.

    `one_by_one` says that disk is short: each package has to be installed, and its wheel gone, before the next is fetched.
    """

    release: Release
    python: str
    python_version: tuple[int, int]
    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()
    wheel: str = "default wheel"
    download_mb: int | None = None
    kept_mb: int | None = None
    measured: str = ""
    for_gpu: bool = False
    one_by_one: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def size(self) -> str:
        """Download and disk use in words, with 'about' or 'up to' where they were not measured for this very wheel."""
        if self.download_mb is None or self.kept_mb is None:
            return "size unknown"
        download, kept = (f"{self.measured}{_size_in_words(size)}" for size in (self.download_mb, self.kept_mb))
        return f"{download} to download, {kept} to keep"

    def lines(self) -> list[str]:
        """The plan for a person, a line a fact."""
        version = ".".join(map(str, self.python_version))
        return [
            f"torch {self.release}: {self.wheel}, {self.size}",
            f"  Python {version} ({self.python})",
            *(f"  {remark}" for remark in self.remarks),
        ]


def plan(
    release: Release,
    host: Host,
    table: Table,
    *,
    needs_gpu: bool | None = None,
    torch_index: str | None = None,
    pytorch_answers: bool = False,
) -> Plan:
    """How to install `release` on `host`; ReleaseError with the reason where it cannot be.

    `needs_gpu` is False where only the CPU model will run; by default a wheel for the GPU is taken where there is one.
    `torch_index` is a person's own index (URL) or folder of wheels. `pytorch_answers` says that PyTorch's index can be
    reached: then a machine without a GPU takes the CPU wheel from there.
    """
    entry = table.find(release.version)
    on_gpu = host.has_gpu if needs_gpu is None else needs_gpu and host.has_gpu
    build = release.build or ("cpu" if not on_gpu and pytorch_answers and torch_index is None else None)
    _check_model(release, on_gpu=on_gpu)
    version, python = _interpreter(release, entry, host)
    check_driver(release, build, entry, host, table, on_gpu=on_gpu)
    download, kept, measured = _sizes(build, entry, table)
    one_by_one = _is_short_of_disk(release, download, kept, host)
    options, origin = _origin(release, build, torch_index, table)
    return Plan(
        release=release,
        python=python,
        python_version=version,
        requirements=(_torch(release, entry), _numpy(release), "asv_runner"),
        options=options,
        wheel=_wheel_in_words(build, entry) + origin,
        download_mb=download,
        kept_mb=kept,
        measured="up to " if torch_index is not None else measured,
        for_gpu=on_gpu,
        one_by_one=one_by_one,
        remarks=(*_remarks(release, entry, host, build, on_gpu=on_gpu), *[_SHORT] * one_by_one),
    )


def with_wheel(planned: Plan, url: str, size: int | None, table: Table) -> Plan:
    """The same plan, corrected by what the installer says it will take: a CPU wheel or a file that is here already.

    `url` is the wheel's place; `size` its bytes where it is a file on this machine.
    """
    name = urllib.parse.unquote(url.rsplit("/", 1)[-1])
    build = re.search(r"\+([A-Za-z0-9.]+)-", name)
    if build and build[1] == "cpu" and planned.for_gpu:
        # pip prefers 2.13.0+cpu of a folder to 2.13.0 of the index; only `===` leaves it out.
        exactly = (f"torch==={planned.release.version}", *planned.requirements[1:])
        return replace(planned, requirements=exactly, remarks=(*planned.remarks, f"passes over {name}: it has no CUDA"))
    if build and build[1] == "cpu":
        sizes = table.cpu_download_mb, table.cpu_kept_mb
        planned = replace(planned, wheel="CPU wheel", download_mb=sizes[0], kept_mb=sizes[1], measured="about ")
    if size is not None:
        rest = None if planned.download_mb is None else max(planned.download_mb - size // 1_000_000, 0)
        origin = f"{planned.wheel}, its file ({size / 1e6:.0f} MB) is on this machine"
        planned = replace(planned, wheel=origin, download_mb=rest, measured="up to ")
    return replace(planned, remarks=(*planned.remarks, f"wheel {name}"))


def _interpreter(release: Release, entry: Entry | None, host: Host) -> tuple[tuple[int, int], str]:
    """The interpreter to take: the one that runs nox where the release has wheels for it, else the newest that will do."""
    wanted = [version for version in PYTHONS if entry is None or version in entry.pythons]
    if host.own in wanted and host.own in host.pythons:
        return host.own, host.pythons[host.own]
    for version in reversed(wanted):
        if version in host.pythons:
            return version, host.pythons[version]
    raise ReleaseError(
        f"{release} cannot be installed: it has wheels for Python {_versions(wanted)}, "
        f"this machine has {_versions(host.pythons) or 'none of 3.10 to 3.13'}; install one of them, then run again",
    )


def _check_model(release: Release, *, on_gpu: bool) -> None:
    """ReleaseError where only the CPU model could run the cases, and it does not know this release."""
    if on_gpu or knows(release.version):
        return
    raise ReleaseError(
        f"{release} cannot run here: it needs an NVIDIA GPU, since the CPU model knows torch {'.'.join(map(str, OLDEST))} and newer only",
    )


def _sizes(build: str | None, entry: Entry | None, table: Table) -> tuple[int | None, int | None, str]:
    """Megabytes to download and to keep, and 'about ' unless they were measured for this very wheel."""
    if build == "cpu":
        return table.cpu_download_mb, table.cpu_kept_mb, "about "
    if entry is None or entry.download_mb is None:
        return None, None, "about "
    kept = entry.kept_mb if entry.kept_mb is not None else round(entry.download_mb * KEPT_PER_DOWNLOAD)
    return entry.download_mb, kept, "" if entry.kept_mb is not None and build in (None, entry.default_build) else "about "


def _is_short_of_disk(release: Release, download: int | None, kept: int | None, host: Host) -> bool:
    """True where the wheels and what is unpacked from them do not fit beside each other, but do one package after another.

    ReleaseError where not even that fits.
    """
    if download is None or kept is None or download + kept <= host.free_mb:
        return False
    # What 2.0 requires requires torch itself: nothing of it can come before.
    least = kept + LAST_PER_DOWNLOAD * download if release.key[0] >= _REQUIRES_TORCH_BEFORE else kept + download
    if least <= host.free_mb:
        return True
    raise ReleaseError(
        f"{release} cannot be installed: it takes {_size_in_words(least)} of disk while it is installed, "
        f"{_size_in_words(host.free_mb)} are free; make room (nox -s clean), then run again",
    )


def _origin(release: Release, build: str | None, torch_index: str | None, table: Table) -> tuple[tuple[str, ...], str]:
    """Options that tell the installer where wheels are, and the same in words; the usual index is always asked too."""
    nightly = ".dev" in release.version
    pre = ("--pre",) if nightly else ()
    if torch_index is not None:
        if "://" in torch_index:
            return (*pre, "--extra-index-url", torch_index), f" from {torch_index}"
        return (*pre, "--find-links", torch_index), f" from {torch_index}"
    if nightly:
        build = build or table.entries[-1].default_build
        return (*pre, "--extra-index-url", f"{PYTORCH_INDEX}/nightly/{build}"), " from PyTorch's nightly index"
    entry = table.find(release.version)
    if build is None or (release.build is not None and entry is not None and build == entry.default_build):
        return (), ""
    return ("--extra-index-url", f"{PYTORCH_INDEX}/{build}"), " from PyTorch's index"


def _wheel_in_words(build: str | None, entry: Entry | None) -> str:
    if build == "cpu":
        return "CPU wheel"
    if build is None:
        return f"default wheel, CUDA {entry.cuda}" if entry else "default wheel"
    return f"{build} wheel"


def _remarks(
    release: Release, entry: Entry | None, host: Host, build: str | None, *, on_gpu: bool,
) -> Iterable[str]:  # fmt: skip
    if on_gpu:
        yield f"GPU {', '.join(sorted(set(host.gpus))) or 'of unknown name'}, driver {host.driver}: new enough"
    elif host.has_gpu:
        yield "the GPU is not used: the cases run on the CPU model"
    else:
        yield "no NVIDIA GPU: the cases run on the CPU model"
    if entry is None:
        yield "a nightly: no table says what it needs"
    elif release.build is not None and build not in (*entry.builds, entry.default_build):
        yield f"the table knows no {build} build of {release.version}; it may be there all the same"


def _torch(release: Release, entry: Entry | None) -> str:
    """The requirement for torch. The package index names its default wheels without their build."""
    default = entry is not None and release.build == entry.default_build
    return f"torch=={release.version if default else release}"


def _numpy(release: Release) -> str:
    return "numpy" if release.key[0] >= _NUMPY_2 else "numpy<2"


def _versions(versions: Iterable[Sequence[int]]) -> str:
    return ", ".join(".".join(map(str, version)) for version in versions)


def _size_in_words(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 100 else f"{megabytes:.0f} MB"
