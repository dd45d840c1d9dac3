"""A git repository in which each commit is a torch release: the axis along which asv draws.

Derived and disposable: the same chain gives the same hashes on every machine. It holds a single file, VERSION, and has no
work tree; asv reads its log and its tags and never checks anything out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from replaydrift.errors import ReplaydriftError
from replaydrift.history.chain import Step

BRANCH: Final = "main"
_AUTHOR: Final = "replaydrift <replaydrift>"


def build_repository(folder: Path, chain: Sequence[Step]) -> dict[str, str]:
    """The commit of each version, by version, in a new repository in `folder`; whatever was there is replaced.

    ReplaydriftError where git is missing or fails.
    """
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    _git(fresh, "init", "--quiet", "--object-format=sha1")
    _git(fresh, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    _git(fresh, "fast-import", "--quiet", given=_stream(chain))
    commits = _git(fresh, "rev-list", "--reverse", BRANCH).split()
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return {step.version: commit for step, commit in zip(chain, commits, strict=True)}


def clean_environment() -> Mapping[str, str]:
    """The environment of this process without git's variables: a hook that publishes must not write into its own repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def _stream(chain: Sequence[Step]) -> bytes:
    """What `git fast-import` reads: the commits one after the other on one branch, a tag on each."""
    parts: list[bytes] = []
    for number, step in enumerate(chain, 1):
        when = f"{_AUTHOR} {step.seconds} +0000"
        parts += [
            f"commit refs/heads/{BRANCH}\nmark :{number}\nauthor {when}\ncommitter {when}\n".encode(),
            _data(step.message),
            b"M 100644 inline VERSION\n",
            _data(step.version + "\n"),
            f"reset refs/tags/{step.tag}\nfrom :{number}\n\n".encode(),
        ]
    return b"".join(parts)


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)


def _git(folder: Path, *words: str, given: bytes = b"") -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, input=given, env=clean_environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise ReplaydriftError("git is not installed, and asv needs it: install it, or publish with --no-asv") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ReplaydriftError(
            f"`git {' '.join(words)}` failed in {str(folder)!r}: {said or 'it gave no reason'}; publish again, or with --no-asv",
        )
    return done.stdout.decode()
