"""The site as files: whole, the same each time, safe whatever a case said, and labelled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from conftest import RELEASES, WHY, Made

from replaydrift.catalogue import read_catalogue
from replaydrift.library import read_library
from replaydrift.report import html
from replaydrift.report.html.paths import case_page, release_page, slug
from replaydrift.report.overview import overview
from replaydrift.store import Store

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta"}
LEFT_OPEN = {"td", "th", "tr", "li", "p", "option", "tbody", "thead", "dt", "dd"}


class Page(HTMLParser):
    """What a browser would act on: links, sources, scripts, handlers, ids, and elements that were never closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.images = 0
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters of an element."""
        facts = dict(attrs)
        self.links += [value for name, value in attrs if name in ("href", "src") and value is not None]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.ids += [facts["id"]] if facts.get("id") else []
        self.images += tag == "img"
        if tag == "script":
            self.scripts.append(facts)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element, and those that HTML closes with it."""
        while self.open and self.open[-1] != tag and self.open[-1] in LEFT_OPEN:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")


def pages(made: Made) -> list[Path]:
    """All pages of the site."""
    return sorted(made.folder.rglob("*.html"))


def test_every_case_and_release_has_a_page(made: Made) -> None:
    """There is a page for each case, those that the library no longer has included, and for each release."""
    names = {str(path.relative_to(made.folder)) for path in pages(made)}
    cases = {case_page(name) for name in ("shared-pool/bug", "shared-pool/fix-capture-order", "rng/custom-unregistered", "gone/bug")}
    shared = {"index.html", "differs.html", "audit.html", "agreement.html", "costs.html"}
    assert names == cases | {release_page(release) for release in RELEASES} | shared


def test_same_facts_give_same_bytes(make_site: Callable[..., Made]) -> None:
    """Two runs over the same store write the same files, so that CI can hold a committed report against a fresh one."""
    one, other = make_site("one"), make_site("other")
    files = sorted(path.relative_to(one.folder) for path in one.folder.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(other.folder) for path in other.folder.rglob("*") if path.is_file())
    assert [name for name in files if (one.folder / name).read_bytes() != (other.folder / name).read_bytes()] == []


def test_pages_that_are_gone_are_deleted(make_site: Callable[..., Made]) -> None:
    """A page of an earlier report that is not written any more goes; a file that somebody put there stays."""
    made = make_site()
    stale, foreign, asv = (made.folder / name for name in ("cases/old--bug.html", "cases/mine.html", "asv/index.html"))
    stale.write_text(made.page("index.html"), encoding="utf-8")
    foreign.write_text("<p>mine</p>", encoding="utf-8")
    asv.parent.mkdir()
    asv.write_text("<p>asv</p>", encoding="utf-8")
    html.write(made.facts, made.folder)
    assert not stale.exists()
    assert foreign.exists()
    assert asv.exists()
    assert not (made.folder / "costs.html").exists()


def test_markup_is_well_formed(made: Made) -> None:
    """Every element is closed where it was opened, and no id is used twice."""
    for path in pages(made):
        page = Page(path.read_text(encoding="utf-8"))
        assert (path.name, page.wrong) == (path.name, [])
        assert len(page.ids) == len(set(page.ids)), path.name


def test_links_lead_somewhere(made: Made) -> None:
    """Every link within the site names a file of it; asv's site is built apart."""
    for path in pages(made):
        for link in Page(path.read_text(encoding="utf-8")).links:
            target = link.partition("#")[0]
            if target and not target.startswith(("https://", "data:,")) and "asv/" not in target:
                assert (path.parent / target).resolve().is_file(), f"{path.name} links to {link}"


def test_nothing_is_loaded_from_elsewhere(made: Made) -> None:
    """Scripts and style sheets come from the report's own folder; other sites are only linked to."""
    for path in pages(made):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//", text) == []
    for name in ("report.css", "report.js"):
        assert "http" not in (made.folder / "static" / name).read_text(encoding="utf-8")


def test_output_of_cases_is_text(made: Made) -> None:
    """What a case printed cannot start a script, add a handler, or turn the text around it, on any page."""
    for path in pages(made):
        text = path.read_text(encoding="utf-8")
        page = Page(text)
        own = [facts for facts in page.scripts if (facts.get("src") or "").endswith("report.js") or facts.get("type") == "application/json"]
        assert page.scripts == own
        assert page.handlers == []
        assert page.images == 0
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert not any(link.startswith("javascript:") for link in page.links)
    assert "document.title=" in made.page(case_page("shared-pool/bug"))
    assert "&lt;b&gt;not bold" in made.page(case_page("shared-pool/bug"))


def test_names_of_the_store_cannot_leave_the_folder() -> None:
    """A case or release with a path in its name becomes a plain file name."""
    assert case_page("../../etc/passwd") == "cases/etc-passwd.html"
    assert slug("../x") == "x"
    assert slug("...") == "unnamed"
    assert release_page("2.14.1+cu130") == "releases/2.14.1-cu130.html"


def test_modelled_results_are_labelled(made: Made) -> None:
    """On each page, every part that the CPU model filled carries its label, and the GPU's parts do not."""
    for name in ("index.html", case_page("shared-pool/bug"), release_page(RELEASES[3]), "differs.html"):
        sections = re.findall(r'<section class="(?:machine|matrix-of)([^"]*)"[^>]*>\s*<h[23]>(.*?)</h[23]>', made.page(name), re.DOTALL)
        assert sections, name
        for classes, heading in sections:
            modelled = "h200" not in heading
            assert ("hatched" in classes) is modelled
            assert ("modelled" in heading) is modelled


def test_a_report_of_the_model_alone_says_so_on_every_page(make_site: Callable[..., Made]) -> None:
    """Where no GPU ran anything, each page starts by saying so."""
    made = make_site(machines=("model",))
    assert all("No GPU executed anything in this report" in path.read_text(encoding="utf-8") for path in pages(made))
    assert "agreement.html" not in made.page("index.html")


def test_marks_of_rules_and_durations(made: Made) -> None:
    """Verdicts that rest on a rule of the model or on assumed durations are marked in the matrix and named on the case's page."""
    text = made.page("index.html")
    assert text.count('class="e mr"') == 4
    assert len(re.findall(r'class="[ah] mt"', text)) == 4
    assert made.page(case_page("shared-pool/bug")).count("reproduced <small>rule</small>") == 4
    assert "rests on a written rule" not in made.page(release_page(RELEASES[3])).split('id="on-model"')[0]
    assert "a matter of timing: other durations" in made.page(release_page(RELEASES[3])).split('id="on-model"')[1]
    assert "pageable-copy-refused" in made.page(case_page("shared-pool/bug"))
    assert "Depends on durations the model assumes" in made.page(case_page("shared-pool/fix-capture-order"))


def test_silent_wrong_results_come_first(made: Made) -> None:
    """On the front page and on the release's own, what is silently wrong now stands before what was fixed."""
    for name in ("index.html", release_page(RELEASES[3])):
        text = made.page(name)
        assert 0 < text.index("Silently wrong now") < text.index(">Fixed")
    assert WHY in made.page("index.html")


def test_the_newest_change_is_unfolded(make_site: Callable[..., Made]) -> None:
    """The front page unfolds one arrival a machine: the newest that changed anything, even where a later one did not."""
    made = make_site(machines=("h200",))
    machine = made.facts.machines[0]
    quiet = replace(machine.arrivals[-1], new=RELEASES[3], findings=())
    html.write(replace(made.facts, machines=(replace(machine, arrivals=(*machine.arrivals[:2], quiet)),)), made.folder)
    unfolded = re.findall(r'<details class="arrival" open>\s*<summary><span class="to">([^<]+)', made.page("index.html"))
    assert machine.arrivals[0].findings
    assert unfolded == [next(check.new for check in reversed(machine.arrivals[:2]) if check.findings)]


def test_case_page_tells_the_whole_story(made: Made) -> None:
    """Chapter, code, strip, evidence, chain, warnings, claims, costs and the way to repeat it are all there."""
    bug, rng = made.page(case_page("shared-pool/bug")), made.page(case_page("rng/custom-unregistered"))
    assert "<code>pool=</code> may hand out a block twice" in bug
    assert "<li>capture order is safe</li>" in bug
    assert "Mechanism:" not in re.sub(r"<pre.*?</pre>", "", bug, flags=re.DOTALL)
    assert 'class="p-k">def</span>' in bug
    assert "replaydrift show shared-pool/bug" in bug
    assert bug.count('class="cell replay differs"') == 2
    assert "One block for scratch of graph 1 and y2." in bug
    assert '<th scope="row">bucket</th><td><code>8</code></td>' in bug
    assert 'class="plot"' in bug
    assert "https://example.org/page" not in bug
    assert "operation failed\nmore lines" in rng
    assert "caused by" in rng
    assert "deprecated" in rng
    assert "5×" in rng
    assert "2.12.1+cu130 to 2.13.0+cu130" in rng


def test_floor_of_a_case(made: Made) -> None:
    """A case that became right says from which release on; one that ceased to be says that the newest is not; a bug says neither."""
    assert "Right from <b>2.14.1+cu130</b> on." in made.page(case_page("rng/custom-unregistered"))
    assert "Not seen to be right on the newest release." in made.page(case_page("shared-pool/fix-capture-order"))
    assert 'class="floor"' not in made.page(case_page("shared-pool/bug"))


def test_agreement_is_counted(made: Made) -> None:
    """The model is held against the GPU release by release, and what rests on a rule is counted apart."""
    page = made.page("agreement.html")
    assert page.count("<td>4 of 4</td><td>1</td><td>0</td>") == len(RELEASES)


def test_attempts_that_disagree_are_all_shown(made: Made) -> None:
    """A flaky case shows each way it came out, with how often."""
    page = made.page(case_page("gone/bug"))
    assert "2 of 3 attempts: correct" in page
    assert "1 of 3 attempts: wrong" in page
    assert "The library has no case of this name any more" in page


def test_claims_are_held_against_releases(made: Made) -> None:
    """A contradicted claim names the releases and what was seen; one that fits names its releases too."""
    page = made.page(case_page("shared-pool/fix-capture-order"))
    assert "as claimed on 2.11.0, 2.12.1, 2.13.0" in page
    assert "2.14.1: wrong (8, 4, 3)" in page
    assert "shared-pool--fix-capture-order" in made.page("differs.html")


def test_programs_get_the_changes(made: Made) -> None:
    """changes.json has every machine's arrivals in the form of the check, with the engine beside them."""
    tree = json.loads(made.page("changes.json"))
    gpu, model = tree["machines"]
    assert (gpu["machine"], gpu["modelled"], model["modelled"]) == ("h200", False, True)
    assert [arrival["new"] for arrival in gpu["arrivals"]] == list(RELEASES[1:])
    assert gpu["arrivals"][2]["findings"][0]["change"] == "now-wrong"


def test_an_empty_store(tmp_path: Path) -> None:
    """Without results the report says how to get some."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "g.py").write_text(
        'def eager():\n    yield "replay", 1\n\n\ndef bug():\n    """Is wrong."""\n    yield "replay", 2\n'
    )
    catalogue = read_catalogue(read_library(tmp_path / "cases"))
    html.write(overview(Store(tmp_path / "results"), catalogue), tmp_path / "reports")
    assert "No results yet" in (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")
    assert "No machine of this report ran this case" in (tmp_path / "reports" / case_page("g/bug")).read_text(encoding="utf-8")


def test_front_page_stays_small(large: Path) -> None:
    """With 20 releases and 300 cases the front page is under a megabyte."""
    assert 100_000 < (large / "index.html").stat().st_size < 1_000_000
