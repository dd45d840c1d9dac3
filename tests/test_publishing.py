"""Publishing: everything generated in one go, the same bytes each time, and a check that notices what is stale."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from making import environment, record

from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.cli import cli
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.records import Block, Costs, Subject, Visit
from replaydrift.errors import StoreError
from replaydrift.explanations import Explanation
from replaydrift.guide import Wanted
from replaydrift.library import read_library
from replaydrift.publishing import BEGIN, END, Known, publish_report, stale_files
from replaydrift.store import Store


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """One group of one case."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "g.py").write_text(
        '"""G."""\n\n\ndef eager():\n    yield "replay", 1\n\n\ndef bug():\n    """B."""\n    yield "replay", 2\n'
    )
    return read_catalogue(read_library(tmp_path / "cases"))


@pytest.fixture
def filled(store: Store) -> Store:
    """Two releases of one machine."""
    for release in ("2.13.0+cu130", "2.14.1+cu130"):
        store.write(environment(release), [record("wrong", case="g/bug")])
    return store


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    """A README with a place for the matrix."""
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    return path


def test_published_is_not_stale(filled: Store, catalogue: Catalogue, tmp_path: Path, readme: Path) -> None:
    """What was just published is what the store gives, byte for byte; README keeps what stands around its matrix."""
    written = publish_report(filled, catalogue, Known(), tmp_path / "reports", readme)
    assert {"index.html", "index.md", "README.md"} <= {path.name for path in written}
    assert stale_files(filled, catalogue, Known(), tmp_path / "reports", readme) == ()
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "| g | ●1 | ●1 |" in text


def test_stored_costs_are_published(filled: Store, catalogue: Catalogue, tmp_path: Path) -> None:
    """Costs that the store has are on a page of their own and on that of their case; the report of an older store is then stale."""
    reports = tmp_path / "reports"
    publish_report(filled, catalogue, Known(), reports)
    subject = Subject("v1", {"nodes": (3,)})
    costs = Costs(Block("one", "measure", ("2.13.0+cu130",)), environment(), (Visit(1, "2026-12-01T09:00:00+00:00", 1.0, {"g/bug": subject}),))
    CostStore(filled.root).write(costs)
    assert reports / "costs.html" in stale_files(filled, catalogue, Known(), reports)
    publish_report(filled, catalogue, Known(), reports)
    assert stale_files(filled, catalogue, Known(), reports) == ()
    assert "nodes of g/bug over 1 release, 3" in (reports / "cases" / "g--bug.html").read_text()


def test_stale(filled: Store, catalogue: Catalogue, tmp_path: Path, readme: Path) -> None:
    """An edited page, a page that nothing gives any more, a missing one and an old matrix are all noticed; asv's site is not ours."""
    reports = tmp_path / "reports"
    publish_report(filled, catalogue, Known(), reports, readme)
    (reports / "index.md").write_text("edited")
    (reports / "cases" / "gone.html").write_text("left over")
    (reports / "index.html").unlink()
    (reports / "asv").mkdir()
    (reports / "asv" / "index.html").write_text("asv's")
    (reports / "upgrade-2.13-to-2.15.md").write_text("written by a person")
    readme.write_text(readme.read_text().replace("●1", "✓1"))
    stale = {path.relative_to(tmp_path).as_posix() for path in stale_files(filled, catalogue, Known(), reports, readme)}
    assert stale == {"reports/index.md", "reports/cases/gone.html", "reports/index.html", "README.md"}
    publish_report(filled, catalogue, Known(), reports, readme)
    assert stale_files(filled, catalogue, Known(), reports, readme) == ()
    assert (reports / "upgrade-2.13-to-2.15.md").read_text() == "written by a person"


def test_guides(filled: Store, catalogue: Catalogue, tmp_path: Path) -> None:
    """A wanted guide is written; new results, another advice and an edit make it stale; without its releases it is not written and goes."""
    wanted = Wanted("upgrade.md", "h200", "2.13.0", "2.15.0")
    known, reports = Known(guides=(wanted,)), tmp_path / "reports"
    guide = reports / "upgrade.md"
    publish_report(filled, catalogue, known, reports)
    assert not guide.exists()
    filled.write(environment("2.15.0+cu132"), [record("correct", case="g/bug")])
    assert guide in stale_files(filled, catalogue, known, reports)
    publish_report(filled, catalogue, known, reports)
    assert "- **`g/bug`** (since 2.15.0)" in guide.read_text()
    assert "About to upgrade? [From torch 2.13.0 to 2.15.0: " in (reports / "index.md").read_text()
    assert "(upgrade.md)" in (reports / "index.md").read_text()
    assert stale_files(filled, catalogue, known, reports) == ()
    entry = Explanation("g/bug", "*", "2.14.1", "2.15.0", "fixed", "wrong", "correct", "why", "", advice="Be glad.")
    assert guide in stale_files(filled, catalogue, Known((entry,), guides=(wanted,)), reports)
    guide.write_text(guide.read_text() + "by hand")
    assert stale_files(filled, catalogue, known, reports) == (guide,)
    gone = Known(guides=(Wanted("upgrade.md", "b200", "2.13.0", "2.15.0"),))
    assert set(stale_files(filled, catalogue, gone, reports)) == {reports / "index.md", guide}
    publish_report(filled, catalogue, gone, reports)
    assert not guide.exists()


def test_new_results_make_it_stale(filled: Store, catalogue: Catalogue, tmp_path: Path) -> None:
    """A record that arrives after the report was made is noticed."""
    publish_report(filled, catalogue, Known(), tmp_path / "reports")
    filled.write(environment("2.15.0+cu132"), [record("correct", case="g/bug")])
    assert tmp_path / "reports" / "index.md" in stale_files(filled, catalogue, Known(), tmp_path / "reports")


def test_readme_without_a_place(filled: Store, catalogue: Catalogue, tmp_path: Path) -> None:
    """A README without the two lines is left alone, and the error shows them."""
    path = tmp_path / "README.md"
    path.write_text("no matrix")
    with pytest.raises(StoreError, match="has no matrix to bring up to date"):
        publish_report(filled, catalogue, Known(), tmp_path / "reports", path)
    assert path.read_text() == "no matrix"


def test_the_check_of_the_command_line(filled: Store, catalogue: Catalogue, tmp_path: Path) -> None:
    """`publish --check` writes nothing, and exits with 1 until the report has been published."""
    arguments = [
        "publish",
        "--no-asv",
        "--results",
        str(filled.root),
        "--cases-dir",
        str(tmp_path / "cases"),
        "--reports",
        str(tmp_path / "reports"),
    ]
    before = CliRunner().invoke(cli, [*arguments, "--check"])
    assert (before.exit_code, (tmp_path / "reports").exists()) == (1, False)
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert CliRunner().invoke(cli, [*arguments, "--check"]).exit_code == 0
