"""asv's site, built anew from the store: the repository of releases, the result files, then the real `asv publish`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from replaydrift import releases
from replaydrift.errors import ReplaydriftError
from replaydrift.history import configuration
from replaydrift.history.chain import chain_of
from replaydrift.history.copies import add_copies
from replaydrift.history.pages import touch_up
from replaydrift.history.release_repository import build_repository, clean_environment
from replaydrift.history.result_files import read_machines, write_result_files
from replaydrift.releases import Table
from replaydrift.store import Store

_STEP: Final = re.compile(r"\[\s*\d+\.\d+%\]\s")
_SHOWN_OF_A_FAILURE: Final = 15


def derived_folder(store: Store) -> Path:
    """Where asv's files of a store are: all of them are derived from it, and may be deleted."""
    return store.root / "asv"


def _say(text: str) -> None:
    print(f"history: {text}", file=sys.stderr, flush=True)


def derive(store: Store, *, table: Table | None = None, say: Callable[[str], None] = _say) -> Path | None:
    """The path of asv's configuration, beside a new repository of releases and new result files; None for an empty store.

    StoreError where the store is damaged, ReleaseError where a stored name is no release, ReplaydriftError where git fails.
    """
    from replaydrift.history.releases_page import releases_page  # noqa: PLC0415  it brings jinja2, which benchmarks can do without

    table = table or releases.read_table()
    machines = read_machines(store, table, say)
    if not machines:
        say(f"nothing is stored in {str(store.root)!r}, so there is no history to draw: run `nox -s matrix` first")
        return None
    folder = derived_folder(store)
    folder.mkdir(parents=True, exist_ok=True)
    chain = chain_of((name for machine in machines for name in machine.names), table)
    commits = build_repository(folder / configuration.REPOSITORY, chain)
    count = write_result_files(folder / configuration.RESULTS, machines, chain, commits)
    say(f"wrote {count} result files and a repository of {len(chain)} releases in {str(folder)!r}")
    path = configuration.write_configuration(folder)
    (folder / configuration.RELEASES_PAGE).write_text(releases_page(machines, chain, commits), encoding="utf-8")
    return path


def publish(
    store: Store, html_dir: Path, *, table: Table | None = None, copies: bool = True, say: Callable[[str], None] = _say,
) -> Path | None:  # fmt: skip
    """The front page of asv's site in `html_dir`, or None, with a message, where the store is empty.

    Rebuilds `<store>/asv` (repository of releases, result files, configuration), then runs `asv publish`. `html_dir` is
    replaced as a whole, and only once asv has ended well. `table` is torch-releases.toml by default; with `copies` the scripts
    that asv's pages load are put beside them, where they can be had; `say` gets a line a step.
    ReplaydriftError where `html_dir` holds something else, asv is not installed, or asv fails (with its last words).
    """
    _check_ours(html_dir)
    if importlib.util.find_spec("asv") is None:
        raise ReplaydriftError("asv is not installed: python3 -m pip install 'replaydrift[driver]', or publish with --no-asv")
    config = derive(store, table=table, say=say)
    if config is None:
        return None
    fresh = config.parent / configuration.HTML
    try:
        _run_asv(config, fresh, say)
        shutil.copy(config.parent / configuration.RELEASES_PAGE, fresh)
        touch_up(fresh)
        if copies:
            add_copies(fresh, say)
        if html_dir.exists():
            shutil.rmtree(html_dir)
        html_dir.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(fresh, html_dir)
    except OSError as error:
        raise ReplaydriftError(f"cannot write {str(html_dir)!r}: {error.strerror or error}; choose another --reports folder") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    say(f"asv's site is {str(html_dir / 'index.html')!r}")
    return html_dir / "index.html"


def _check_ours(html_dir: Path) -> None:
    """ReplaydriftError where the folder to be replaced was not made by asv: a slip in a path must cost nothing."""
    if html_dir.exists() and not (html_dir / "asv.js").is_file() and (not html_dir.is_dir() or any(html_dir.iterdir())):
        raise ReplaydriftError(f"{str(html_dir)!r} was not made by asv, and publishing would replace it: move it, or choose another folder")


def _run_asv(config: Path, html_dir: Path, say: Callable[[str], None]) -> None:
    command = [sys.executable, "-m", "asv", "publish", "--config", str(config), "--no-pull", "--html-dir", str(html_dir.absolute())]
    last: deque[str] = deque(maxlen=_SHOWN_OF_A_FAILURE)
    with subprocess.Popen(
        command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            last.append(line.rstrip())
            if _STEP.match(line):
                say(f"asv {line.strip().rstrip('.')}")
            elif "Couldn't" in line or "warning" in line.lower():
                say(f"asv warns: {line.strip()}")
    if process.returncode != 0:
        raise ReplaydriftError(
            f"`{' '.join(command)}` failed with exit code {process.returncode}; the store is unchanged. Its last words:\n"
            + "\n".join(last),
        )
