"""The derived repository: one commit a release, tagged, dated, and the same wherever it is made."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path

import pytest

from replaydrift.errors import ReplaydriftError
from replaydrift.history.chain import Step
from replaydrift.history.release_repository import build_repository

CHAIN = (
    Step("2.9.0", dt.date(2025, 10, 15), "Released on 2025-10-15.", "12.8"),
    Step("2.10.0", dt.date(2026, 1, 21), "Released on 2026-01-21.", "13.0"),
    Step("2.10.1", dt.date(2026, 1, 20), "Out of order by date.", None),
)


def git(folder: Path, *words: str) -> list[str]:
    """The lines that git prints."""
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_one_tagged_commit_a_release_in_order(tmp_path: Path) -> None:
    """Commits stand in the chain's order, even where dates do not, with both dates the release's and a tag each."""
    commits = build_repository(tmp_path / "repository", CHAIN)
    log = git(tmp_path / "repository", "log", "--reverse", "--format=%H %as %cs %D")
    assert list(commits) == ["2.9.0", "2.10.0", "2.10.1"]
    assert log == [
        f"{commits['2.9.0']} 2025-10-15 2025-10-15 tag: v2.9.0",
        f"{commits['2.10.0']} 2026-01-21 2026-01-21 tag: v2.10.0",
        f"{commits['2.10.1']} 2026-01-20 2026-01-20 HEAD -> main, tag: v2.10.1",
    ]


def test_content_and_message(tmp_path: Path) -> None:
    """A commit's one file is the version, its message the facts; git itself finds nothing wrong with it."""
    build_repository(tmp_path / "repository", CHAIN)
    assert git(tmp_path / "repository", "show", "v2.9.0:VERSION") == ["2.9.0"]
    assert git(tmp_path / "repository", "log", "-1", "--format=%B", "v2.9.0")[:4] == [
        "torch 2.9.0", "", "Released on 2025-10-15.", "The default wheel has CUDA 12.8.",
    ]  # fmt: skip
    git(tmp_path / "repository", "fsck", "--strict")


def test_same_chain_same_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes depend on the chain alone: not on the user's name, time zone, or the repository that a hook runs in."""
    one = build_repository(tmp_path / "one", CHAIN)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Someone Else")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert build_repository(tmp_path / "other", CHAIN) == one
    assert not (tmp_path / "elsewhere").exists()


def test_a_release_more_at_the_end_keeps_hashes(tmp_path: Path) -> None:
    """Building again replaces what was there; commits before a new release stay what they were."""
    short = build_repository(tmp_path / "repository", CHAIN[:2])
    assert {**build_repository(tmp_path / "repository", CHAIN), **short} == build_repository(tmp_path / "repository", CHAIN)
    assert len(git(tmp_path / "repository", "tag")) == 3


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git is not installed, the error says so and how to go on without."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReplaydriftError, match="git is not installed.*--no-asv"):
        build_repository(tmp_path / "repository", CHAIN)
