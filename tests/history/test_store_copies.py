"""Copies of what asv's pages load: where they are taken from, what is refused, and what happens without a network."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import urllib.request
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest

from replaydrift.history import copies
from replaydrift.history.copies import PACKED, add_copies, is_intact

SCRIPT = b"alert(1)"


def integrity(content: bytes) -> str:
    """The hash as a page states it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A page that loads two files in the two ways that asv's does."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text(
        f'<script src="https://cdn.invalid/a/jquery-3.3.1.min.js" integrity="{integrity(SCRIPT)}" crossorigin="anonymous"'
        ' referrerpolicy="no-referrer" onerror="f()"></script>\n'
        f'<link rel="stylesheet" href="https://cdn.invalid/b/bootstrap.min.css" integrity="{integrity(b"")}" crossorigin="anonymous">\n'
        '<script src="asv.js"></script>\n',
    )
    return tmp_path / "site"


def no_npm(*words: object, **more: object) -> None:
    """What npm does without a network."""
    raise subprocess.TimeoutExpired("npm", 1)


def answer(monkeypatch: pytest.MonkeyPatch, script: bytes) -> list[str]:
    """Make every address answer with the script, or with nothing for a style; the list grows by each that is asked for."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> BytesIO:
        asked.append(url)
        return BytesIO(b"" if url.endswith(".css") else script)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setattr(subprocess, "run", no_npm)
    return asked


def test_everything_is_loaded_from_beside_the_page(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page names the copies, keeps its other attributes, and has no address left; a second site needs no network."""
    asked = answer(monkeypatch, SCRIPT)
    before = (site / "index.html").read_text()
    assert add_copies(site, lambda _: None, tmp_path / "cache")
    text = (site / "index.html").read_text()
    assert text.splitlines() == [
        '<script src="vendor/jquery-3.3.1.min.js" onerror="f()"></script>',
        '<link rel="stylesheet" href="vendor/bootstrap.min.css">',
        '<script src="asv.js"></script>',
    ]
    assert (site / "vendor" / "jquery-3.3.1.min.js").read_bytes() == SCRIPT
    again = tmp_path / "again"
    again.mkdir()
    (again / "index.html").write_text(before)
    assert add_copies(again, lambda _: None, tmp_path / "cache")
    assert len(asked) == 2


def test_another_file_at_the_address_is_refused(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script whose hash is not the one that asv's page demands is neither used nor kept."""
    answer(monkeypatch, b"alert('evil')")
    before, said = (site / "index.html").read_text(), []
    assert not add_copies(site, said.append, tmp_path / "cache")
    assert (site / "index.html").read_text() == before
    assert not list((tmp_path / "cache").rglob("*.js"))
    assert "go on loading 2 files from the network" in said[-1]


def test_without_network_and_npm_the_page_stays_as_it_is(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be had, one address is tried, the reason is said, and the page is as asv made it."""
    asked: list[str] = []

    def unreachable(url: str, timeout: float) -> BytesIO:
        asked.append(url)
        raise OSError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(copies.shutil, "which", lambda name: None)
    before, said = (site / "index.html").read_text(), []
    assert not add_copies(site, said.append, tmp_path / "cache")
    assert (site / "index.html").read_text() == before
    assert len(asked) == 1
    assert "npm is not installed" in said[-1]


@pytest.mark.parametrize("kind", ["sha256", "sha384", "sha512"])
def test_hashes_of_a_page(kind: str) -> None:
    """The three hashes that a page may demand are told apart from those of other content; an unknown one never fits."""
    stated = f"{kind}-{base64.b64encode(hashlib.new(kind, SCRIPT).digest()).decode()}"
    assert is_intact(SCRIPT, stated)
    assert not is_intact(SCRIPT + b" ", stated)
    assert not is_intact(SCRIPT, stated.replace("sha", "md"))


def test_contract_the_files_asv_asks_for_are_known() -> None:
    """Every file that the installed asv's front page loads from the network is in the table of packages, and found by its form."""
    spec = find_spec("asv")
    if spec is None or spec.origin is None:
        pytest.skip("asv is not installed")
    text = (Path(spec.origin).parent / "www" / "index.html").read_text()
    names = {match["url"].rsplit("/", 1)[-1] for match in copies._TAG.finditer(text)}
    assert names == set(PACKED)
    assert not re.findall(r'<(?:script|link)[^>]*"https://', copies._TAG.sub("", text))
