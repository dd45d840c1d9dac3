"""Publishing with the real asv: the site, and the commands people use on the derived files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic import sweep

from replaydrift.errors import ReplaydriftError
from replaydrift.history import publish
from replaydrift.history.configuration import SETTINGS
from replaydrift.history.site import derive, derived_folder
from replaydrift.releases import Table
from replaydrift.store import Store

pytest.importorskip("asv")
PROJECT = Path(__file__).resolve().parents[2]


def asv(store: Store, *words: str) -> str:
    """What asv prints for a command on the derived files of a store."""
    config = derived_folder(store) / "asv.conf.json"
    command = [sys.executable, "-m", "asv", *words, "--config", config]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def row(text: str, name: str) -> list[str]:
    """The cells of the row of a table that ends with this name."""
    (found,) = [line for line in text.splitlines() if line.rstrip(" |").endswith(f" {name}")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_publish_names_the_release_where_a_verdict_turned(filled: Store, table: Table, tmp_path: Path) -> None:
    """The site lists the one change as a regression of a single release, on one line over four default wheels."""
    said: list[str] = []
    page = publish(filled, tmp_path / "reports" / "asv", table=table, copies=False, say=said.append)
    assert page == tmp_path / "reports" / "asv" / "index.html"
    assert page.is_file()
    index = json.loads((page.parent / "index.json").read_text())
    assert set(index["tags"]) == {"v2.11.0", "v2.12.1", "v2.13.0", "v2.14.1", "v2.15.0"}
    assert {name: values[0] for name, values in index["params"].items()} == {
        "branch": "main", "engine": "cuda", "gpu": "NVIDIA H200", "machine": "h200", "wheel": "default",
    }  # fmt: skip
    assert index["params"]["wheel"] == ["default", "cu126"]
    assert "need a web server" in page.read_text()
    (graph,) = (page.parent / "graphs").rglob("machine-h200/wheel-default/rng.fix_registered.track_differs_from_baseline.json")
    assert [number for _, number in json.loads(graph.read_text())] == [0, 0, 1, 1]
    (regression,) = json.loads((page.parent / "regressions.json").read_text())["regressions"]
    assert regression[0] == "rng.fix_registered.track_differs_from_baseline"
    assert regression[6] == [[None, index["tags"]["v2.14.1"], 0.0, 1.0]]
    assert any("asv [100.00%]" in line for line in said)
    assert not [line for line in said if "warns" in line]


def test_commits_lead_to_the_report(filled: Store, table: Table, tmp_path: Path) -> None:
    """The link that asv makes of a commit is an anchor of a page beside it, whose row leads to the report's page of the release."""
    page = publish(filled, tmp_path / "asv", table=table, copies=False, say=lambda _: None)
    assert page is not None
    index = json.loads((page.parent / "index.json").read_text())
    commit = index["revision_to_hash"][str(index["tags"]["v2.14.1"])]
    name, _, anchor = (index["show_commit_url"] + commit[: index["hash_length"]]).partition("#")
    (line,) = [line for line in (page.parent / name).read_text().splitlines() if f'id="{anchor}"' in line]
    assert "<td>2.14.1<td>" in line
    assert '<a href="../releases/2.14.1-cu126.html">2.14.1+cu126</a> on h200' in line


def test_publishing_twice_gives_the_same_derived_files(filled: Store, table: Table) -> None:
    """Same store, same bytes: the repository's hashes and every result file."""
    def content() -> dict[str, bytes]:
        config = derive(filled, table=table, say=lambda _: None)
        assert config is not None
        return {str(path): path.read_bytes() for path in config.parent.rglob("*.*") if path.is_file() and ".git" not in path.parts}

    assert content() == content()


def test_compare_and_show(filled: Store, table: Table) -> None:
    """`asv compare` marks what differs between two tags, a release between them left out, and `asv show` prints one release."""
    derive(filled, table=table, say=lambda _: None)
    printed = asv(filled, "compare", "v2.13.0", "v2.15.0", "--machine", "h200")
    assert row(printed, "rng.fix_registered.track_differs_from_baseline")[:3] == ["+", "0", "1"]
    assert row(printed, "rng.fix_broken.track_differs_from_baseline")[:3] == ["*", "failed", "0"]
    assert row(printed, "rng.bug.track_capture_ms")[1:4] == ["130.0", "150.0", "1.15"]
    shown = asv(filled, "show", "v2.14.1", "--machine", "h200")
    assert "rng.fix_registered.track_verdict [h200/torch]\n  8\n" in shown
    assert "rng.fix_registered.track_verdict [h200/torch-cu126]\n  1\n" in shown


def test_an_empty_store_is_left_alone(store: Store, table: Table, tmp_path: Path) -> None:
    """With nothing stored there is no site, no derived file, and a line that says what to do."""
    said: list[str] = []
    assert publish(store, tmp_path / "asv", table=table, say=said.append) is None
    assert not (tmp_path / "asv").exists()
    assert not derived_folder(store).exists()
    assert said == [f"nothing is stored in {str(store.root)!r}, so there is no history to draw: run `nox -s matrix` first"]


def test_a_folder_that_asv_did_not_make_is_not_replaced(filled: Store, table: Table, tmp_path: Path) -> None:
    """A slip in the path of the site costs nothing."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("x")
    with pytest.raises(ReplaydriftError, match="not made by asv"):
        publish(filled, tmp_path / "home", table=table)
    assert (tmp_path / "home" / "thesis.tex").is_file()


def test_a_failure_of_asv_is_shown_and_keeps_the_old_site(
    store: Store, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Where asv fails, its last words are in the error and the site that was there stays."""
    sweep(store, "2.13.0+cu130", bug="wrong")
    (tmp_path / "asv").mkdir()
    (tmp_path / "asv" / "asv.js").write_text("old")
    monkeypatch.setitem(SETTINGS, "branches", ["no-such-branch"])
    with pytest.raises(ReplaydriftError, match="(?s)failed with exit code.*no-such-branch"):
        publish(store, tmp_path / "asv", table=table, say=lambda _: None)
    assert (tmp_path / "asv" / "asv.js").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asv", "results"]


def test_the_project_s_own_configuration_says_the_same() -> None:
    """asv.conf.json at the root agrees with what every store's copy is made from."""
    json5 = pytest.importorskip("json5")
    own = json5.loads((PROJECT / "asv.conf.json").read_text())
    assert {key: own[key] for key in SETTINGS} == SETTINGS
    assert (own["repo"], own["results_dir"]) == ("results/asv/repository", "results/asv/results")
