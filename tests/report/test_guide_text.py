"""An upgrade guide as Markdown: the words a reader acts on, in the order of danger, and nothing that could be markup by accident."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from making import attempt, environment, record

from replaydrift.catalogue import Catalogue, read_catalogue
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.explanations import Explanation
from replaydrift.guide import Guide, Item, guide
from replaydrift.library import read_library
from replaydrift.records import Environment
from replaydrift.report.guide_text import to_guide
from replaydrift.report.guide_words import code, linked, moved, prose, side
from replaydrift.store import Store

OLD, MID, LAST = "2.13.0+cu130", "2.14.1+cu130", "2.15.0+cu132"


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """A group of two cases, of which one has a meaning."""
    (tmp_path / "cases").mkdir()
    bodies = "".join(f'def {name}():\n    """{name}."""\n    yield "replay", 1\n\n\n' for name in ("eager", "bug", "fix"))
    (tmp_path / "cases" / "g.py").write_text(f'"""G."""\n\n\n{bodies}')
    (tmp_path / "cases" / "groups.toml").write_text(
        'schema = 1\n\n[groups.g]\ntitle = "G"\nmechanism = "frozen choice"\n\n[groups.g.cases.fix]\nmeaning = "What it means for you."\n'
    )
    return read_catalogue(read_library(tmp_path / "cases"))


def where(release: str) -> Environment:
    """An environment with a note, whose wheel has a CUDA."""
    facts = {"torch": {"version": release, "cuda": {LAST: "13.2"}.get(release, "13.0")}}
    return replace(environment(release, **facts), note="wheel *thinned*")


@pytest.fixture
def filled(store: Store) -> Store:
    """A fix that goes wrong with the last release, a bug that is gone from the middle one on."""
    store.write(where(OLD), [record("correct", case="g/fix", kind="fix"), record("wrong", case="g/bug")])
    store.write(where(MID), [record("correct", case="g/fix", kind="fix"), record("correct", case="g/bug")])
    store.write(where(LAST), [record(attempt("wrong", 7), case="g/fix", kind="fix"), record("correct", case="g/bug")])
    return store


BROKE = Explanation(
    "g/fix", "*", "2.14.1", "2.15.0", "now-wrong", "correct", "wrong", "A kernel_x moved.", "https://github.com/pytorch/pytorch/pull/7",
    "Fixes of `g` break", "Call `f()` first.",
)  # fmt: skip


def page(store: Store, catalogue: Catalogue, *entries: Explanation) -> str:
    """The page from the first release to the last."""
    return to_guide(guide(store, "h200", OLD, LAST, (), entries), catalogue)


def test_what_to_do(filled: Store, catalogue: Catalogue) -> None:
    """A point has its title and release, what to do, the cause with its pull request, the meaning, and both sides."""
    text = page(filled, catalogue, BROKE)
    point = """1. **Fixes of `g` break** (Silently wrong now, since 2.15.0)
   - **What to do:** Call `f()` first.
   - Why: A kernel\\_x moved. ([pull request 7](https://github.com/pytorch/pytorch/pull/7))
   - `g/fix`: What it means for you.
     - 2.13.0: correct `1`
     - 2.15.0: **wrong** `7`, right is `1`
"""
    assert point in text
    assert text.index("## Do before you upgrade") < text.index(point) < text.index("## Fixed") < text.index("**`g/bug`** (since 2.14.1)")


def test_the_answer_comes_first(filled: Store, catalogue: Catalogue) -> None:
    """The first paragraph answers and names what goes wrong and what was fixed; the second says on what, with the wheels' note."""
    answer, measured = page(filled, catalogue, BROKE).split("\n\n")[2:4]
    assert answer.startswith("**Yes, after the one point below, though not all that it costs could be told.** Of 2 cases 0 behave the same")
    assert "*Silently wrong now (1 case):* Fixes of `g` break. *Crashes or hangs now:* none. *Raises now:* none." in answer
    assert "*Fixed, so that a workaround can go:* `g/bug`." in answer
    assert "*Open:* nobody has explained yet what changed in 1 of the cases." in answer
    assert "Measured on NVIDIA H200, driver 580.1." in measured
    assert f"Releases: {OLD}, {MID}, {LAST}." in measured
    assert "Beside torch: CUDA 13.0 → 13.2." in measured
    assert f"Of {OLD}, {MID}, {LAST}: wheel \\*thinned\\*." in measured


def test_unexplained_danger_is_no_yes(filled: Store, catalogue: Catalogue) -> None:
    """What went silently wrong and nobody has explained is open at its place, again at the end, and makes the answer a no."""
    text = page(filled, catalogue)
    assert "**Not yet: of the points below one is dangerous and unexplained.**" in text
    assert "1. **`g/fix`** (Silently wrong now, since 2.15.0)\n   - **Open:** nobody has explained this yet." in text
    open_ = text.partition("## Open\n")[2]
    assert "- `g/fix`: silently wrong now, since 2.15.0; nobody has explained it." in open_
    assert "- `g/bug`: fixed, since 2.14.1; nobody has explained it." in open_


def test_nothing_broke(store: Store, catalogue: Catalogue) -> None:
    """Two releases that behave alike: yes, no list of what to do, and nothing of the cases is open."""
    for release in (OLD, LAST):
        store.write(where(release), [record("wrong", case="g/bug")])
    text = page(store, catalogue)
    assert "**Yes: nothing that worked before was seen to break, though not all that it costs could be told.**" in text
    assert "## Do before" not in text
    assert "g/bug" not in text


def test_new_things_show_what_the_old_release_said(store: Store, catalogue: Catalogue) -> None:
    """What raised and works now is new; the text of the old error, which may hold anything, is shortened and cannot break out."""
    error = "raised:TypeError: " + "`|x" * 200
    for release, outcome in ((OLD, error), (MID, "correct"), (LAST, "correct")):
        store.write(where(release), [record(outcome, case="g/fix", kind="fix")])
    (line,) = [line for line in page(store, catalogue).splitlines() if "; on 2.13.0: raises" in line]
    assert line.startswith("  - `g/fix`; on 2.13.0: raises `TypeError: '|x'|x")
    assert line.count("`") == 4
    assert len(line) < 220


def test_warnings_are_told_once(store: Store, catalogue: Catalogue) -> None:
    """Two cases with the same new warning of one cause share its text."""
    for release, warns in ((OLD, ()), (MID, ("old way",)), (LAST, ("old way",))):
        store.write(where(release), [record(attempt("correct", warns=warns), case=case) for case in ("g/bug", "g/fix")])
    entries = [Explanation(case, "*", "2.13.0", "2.14.1", "warnings-changed", "correct", "correct", "w", "") for case in ("g/bug", "g/fix")]
    text = page(store, catalogue, *entries)
    assert text.count("New: `UserWarning: old way`") == 1
    assert "  - `g/bug`, `g/fix`\n" in text


def test_costs_of_a_step(filled: Store, catalogue: Catalogue) -> None:
    """More memory is a point of the list, below what is silently wrong; times that nobody can tell are named with what would have been seen."""
    grown = CostFinding("mlp/256", "pool_bytes", "changed", False, before=2 * 2**20, after=34 * 2**20)
    open_ = CostFinding("chain/1", "capture_ms", "cannot-tell", True, before=1.0, after=1.1, smallest=1.5)
    costs = CostCheck(MID, LAST, "one", (grown, open_), (6, 6), family=2)
    facts = guide(filled, "h200", OLD, LAST, (), (BROKE,))
    step = replace(facts.steps[1], costs=costs)
    item = Item("do", "cost-changed", (MID, LAST), (MID, LAST), (replace(BROKE, title="Pools grow"),), costs=(grown,))
    priced: Guide = replace(facts, items=(*facts.items, item), priced=(facts.steps[0], step))
    text = to_guide(priced, catalogue)
    assert "2. **Pools grow** (Costs more, since 2.15.0)" in text
    assert "   - `pool_bytes` (memory that the private pools of its graphs hold): 2 MiB → 34 MiB (`mlp/256`)" in text
    assert "from 2.14.1 to 2.15.0 2 of capture and replay were compared, of which 0 changed and 1 could not be told." in text
    assert "*Costs more:* Pools grow." in text
    assert "- 2.13.0 → 2.14.1: none were measured." in text
    assert "  - `capture_ms` of `chain/1` cannot be told: a change below 150 % would not have been noticed." in text


def test_how_far_a_cost_moved() -> None:
    """The subject that moved least, then the one that moved most; the same numbers are said once."""
    found = [CostFinding(f"s/{after}", "nodes", "changed", False, before=10, after=after) for after in (12, 40, 20)]
    assert moved(found) == ["`nodes` (nodes of all graphs captured), 3 subjects: 10 → 12 (`s/12`) to 10 → 40 (`s/40`)"]
    assert moved([found[0], replace(found[0], subject="t")])[0].endswith(", 2 subjects: 10 → 12 (`s/12`)")


def test_words() -> None:
    """Code stays code and the rest is escaped; a lone backtick is no code; links name a pull request; rates where attempts disagree."""
    assert prose("call `a_b()` in a_b *now*") == "call `a_b()` in a\\_b \\*now\\*"
    assert prose("a ` b_c") == "a \\` b\\_c"
    assert linked("w", "https://github.com/pytorch/pytorch/blob/v2.14.1/torch/cuda/graphs.py").startswith("w ([source](")
    assert code("x" * 200, 10) == "`xxxxxxxx …`"
    assert side(record("correct", "wrong", "correct")) == "correct 2 of 3, wrong 1 of 3"
    assert side(record("skipped:needs_x")) == "skipped: needs\\_x"
    assert side(None) == "not run"
