"""Parts of pages: text, drawings, eras, claims, feed, colours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from xml.etree import ElementTree as ET

import pytest
from conftest import HOSTILE, RELEASES, RIGHT, SHARED, STRIP, WHY, Made, attempt, record
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.explanations import Reason
from replaydrift.report.html.audit import POINTS
from replaydrift.report.html.differs import causes, contradictions
from replaydrift.report.html.drawings import drawings, leftover
from replaydrift.report.html.eras import eras_of
from replaydrift.report.html.feed import atom
from replaydrift.report.html.lanes import lanes
from replaydrift.report.html.text import chapter, inline, safe_link, visible
from replaydrift.report.overview import MachineOverview
from replaydrift.strip import MISSING, Cell

ATOM = "{http://www.w3.org/2005/Atom}"


@given(st.text())
def test_any_text_is_harmless(text: str) -> None:
    """Whatever stands in a text, its markup has no element but code and stress, and no character that acts unseen."""
    marked = str(inline(text))
    assert set(re.findall(r"<[^>]*>", marked)) <= {"<code>", "</code>", "<em>", "</em>"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", visible(text))


def test_stress() -> None:
    """A word in asterisks is stressed; a product in plain text is not."""
    assert str(inline("*is* pool memory, 2*x and y*2, a * b * c")) == "<em>is</em> pool memory, 2*x and y*2, a * b * c"


def test_chapter_is_paragraphs_lists_and_code() -> None:
    """A docstring keeps its shape, and loses its fields."""
    text = "Title `x`.\n\n- one\n  more\n- two\n\n    code <b>\n\nMechanism: frozen choice\nSource: https://example.org\n"
    assert str(chapter(text)).splitlines() == [
        "<p>Title <code>x</code>.</p>", "<ul><li>one more</li><li>two</li></ul>", "<pre>code &lt;b&gt;</pre>",
    ]  # fmt: skip


@pytest.mark.parametrize(("link", "kept"), [("https://a.org/b", True), ("javascript:alert(1)", False), ("", False), (None, False)])
def test_only_links_of_the_web_are_links(link: str | None, kept: bool) -> None:
    """A link with another scheme is no link."""
    assert bool(safe_link(link)) is kept


def test_shared_block_is_drawn_once() -> None:
    """Names at one address share a row, the lowest comes first, and the caption names them."""
    (drawn,) = drawings(SHARED)
    svg = ET.fromstring(drawn.svg)
    texts = [node.text for node in svg.iter("text")]
    assert texts == ["+0x0", "scratch of graph 1", "y2", "same block", "+0x200", "y1"]
    assert [node.get("class") for node in svg.iter("rect") if "block" in str(node.get("class"))] == ["block shared", "block"]
    assert "One block for scratch of graph 1 and y2." in drawn.caption
    assert leftover(SHARED) == [("bucket", "8")]


def test_snapshots_are_numbered() -> None:
    """A name that moves says in which snapshots it was where; one that stays does not."""
    (drawn,) = drawings([("address", {"graph": "+0x0", "lr": "+0x200"}), ("address", {"graph": "+0x0", "lr": "+0x0"})])
    assert [node.text for node in ET.fromstring(drawn.svg).iter("text")] == ["+0x0", "graph", "lr (2)", "same block", "+0x200", "lr (1)"]


def test_orders_mark_what_moved() -> None:
    """Steps that stand elsewhere than in the capture order are marked, the others are not."""
    (drawn,) = drawings([("replay-order", ["F0", "B0", "F1"]), ("capture-order", ["F0", "F1", "B0"])])
    kinds = [node.get("class") for node in ET.fromstring(drawn.svg).iter("rect")]
    assert kinds == ["block", "block shared", "block shared", "block", "block", "block"]
    assert drawn.caption == "Marked steps stand elsewhere than in the capture order."


def test_one_order_is_held_against_nothing() -> None:
    """An order alone is drawn as it is: what it would differ from was not recorded."""
    (drawn,) = drawings([("replay-order", ["F0", "B0"])])
    assert drawn.caption == "The replay order that the case recorded."
    assert "shared" not in drawn.svg


def test_a_timeline_is_to_scale() -> None:
    """A bar twice as long in time is twice as wide."""
    (drawn,) = drawings([("timeline", [["GPU", "sleep", 0, 50], ["GPU", "copy", 50, 75], ["CPU", "write", 1, 1.0]])])
    long, short, tiny = (float(str(node.get("width"))) for node in ET.fromstring(drawn.svg).iter("rect"))
    assert long == pytest.approx(2 * short, abs=0.2)
    assert tiny == 3


def cells(*pairs: tuple[object, object]) -> tuple[Cell, ...]:
    """A strip of what was seen and what is right."""
    return tuple(Cell("replay", seen, right) for seen, right in pairs)


def test_a_late_read_leads_to_the_step_whose_value_it_is() -> None:
    """What the GPU gave is joined to the CPU's step that it belongs to, and marked where that is another one."""
    made = lanes("async replay", cells((9, 0), (1, 1), (9, 4), (9, 9)))
    assert made is not None
    svg = ET.fromstring(made.svg)
    lines = [(node.get("class"), node.get("x1") == node.get("x2")) for node in svg.iter("line")]
    assert lines == [("link astray", False), ("link", True), ("link astray", False), ("link", True)]
    assert len({node.get("x1") for node in svg.iter("line")}) == 2
    assert "Steps 1, 3 show the value of another one." in made.caption


@pytest.mark.parametrize(
    ("mechanism", "strip"),
    [
        ("frozen choice", cells((9, 0), (9, 9))),
        ("async replay", cells((0, 0), (1, 1))),  # Nothing is late.
        ("async replay", cells((7, 0), (9, 9))),  # A value of no step at all.
        ("async replay", cells((9, 0), (9, 9), (9, 9))),  # Of either of two.
        ("async replay", (Cell("replay", 9, MISSING), *cells((0, 9)))),
        ("async replay", ()),
    ],
)
def test_lanes_are_drawn_only_where_they_say_something(mechanism: str, strip: tuple[Cell, ...]) -> None:
    """No lanes for another mechanism, for a strip that is right, or for a value that belongs to no step or to several."""
    assert lanes(mechanism, strip) is None


@pytest.mark.parametrize("evidence", [("address", 8), ("address", {"x": True}), ("address", {}), ("order", [1]), ("timeline", [["GPU"]])])
def test_evidence_of_another_form_is_listed(evidence: tuple[str, object]) -> None:
    """What cannot be drawn is not guessed at."""
    assert drawings([evidence]) == []
    assert len(leftover([evidence])) == 1


def test_hostile_evidence_is_text() -> None:
    """A name in evidence cannot leave the drawing."""
    (drawn,) = drawings([("address", {HOSTILE: "+0x0"})])
    assert "<script" not in drawn.svg
    assert "\u202e" not in drawn.svg


def test_neighbours_that_did_the_same_are_one_era() -> None:
    """Releases join while nothing changes, newest first; another value or error starts an era."""
    right, wrong = record("g/fix", "fix", attempt("correct", RIGHT)), record("g/fix", "fix", attempt("wrong", STRIP))
    eras = eras_of(dict(zip(RELEASES, (right, right, wrong, right), strict=True)))
    assert [era.releases for era in eras] == [RELEASES[3:], RELEASES[2:3], RELEASES[:2]]
    assert [era.summary.verdict for era in eras] == ["holds", "fails", "holds"]
    assert eras[2].span == "2.11.0+cu130 to 2.12.1+cu130"


def test_marks_follow_the_record() -> None:
    """A rule in any attempt, and a verdict that rests on durations, are marked."""
    one = record("g/fix", "fix", attempt("correct"), attempt("correct", rules=("b", "a")), timing=True)
    (era,) = eras_of({RELEASES[0]: one})
    assert (era.marks, era.rules) == (("rule", "timing"), ("a", "b"))


def test_contradictions_join_releases(made: Made) -> None:
    """A claim is listed once, with what was seen and on which releases; it has no cause where nobody wrote one down."""
    machine = made.facts.machines[0]
    found = {(row.case, row.claim.source): row for row in contradictions(machine, made.facts.cases(machine))}
    row = found["shared-pool/fix-capture-order", "page"]
    assert row.seen == (("wrong (8, 4, 3)", (RELEASES[3],)),)
    assert row.causes == ()


def test_what_is_written_about_a_contradiction_comes_first() -> None:
    """A reason for this very contradiction is shown from its release on; before it, and for another source, there is none."""
    machine = MachineOverview("h200", "cuda", "NVIDIA H200", {}, (), {}, (Reason("g/bug", "page", "2.13.0", "because", ""),))
    assert [reason.why for reason in causes(machine, "g/bug", "2.13.0+cpu", "page")] == ["because"]
    assert causes(machine, "g/bug", "2.12.1+cu130", "page") == ()
    assert causes(machine, "g/bug", "2.13.0+cu130", "seed") == ()


def test_cause_is_that_of_the_last_change(made: Made) -> None:
    """A release has the cause of the change that led to it, not that of one still to come."""
    machine = made.facts.machines[0]
    assert [entry.why for entry in causes(machine, "rng/custom-unregistered", RELEASES[3], "page")] == [WHY]
    assert causes(machine, "rng/custom-unregistered", RELEASES[2], "page") == ()


def test_feed_is_atom_with_release_dates(made: Made) -> None:
    """An entry a machine and arrival, the newest first, dated as torch was; ids are unique and stay the same."""
    feed = ET.fromstring(atom(made.facts))
    entries = feed.findall(f"{ATOM}entry")
    ids = [str(entry.findtext(f"{ATOM}id")) for entry in entries]
    assert len(entries) == len(set(ids)) == 6
    assert ids == [entry.findtext(f"{ATOM}id") for entry in ET.fromstring(atom(made.facts)).findall(f"{ATOM}entry")]
    titles = [str(entry.findtext(f"{ATOM}title")) for entry in entries]
    assert titles[0] == "torch 2.14.1+cu130 on model (modelled): 1 now-wrong, 1 fixed, 1 flaky"
    assert titles[1].startswith("torch 2.14.1+cu130 on h200: ")
    dates = [str(entry.findtext(f"{ATOM}updated")) for entry in entries]
    assert dates == sorted(dates, reverse=True)
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT00:00:00Z", date) for date in dates)
    assert feed.findtext(f"{ATOM}updated") == dates[0]


def test_feed_of_a_release_without_a_date(made: Made) -> None:
    """A nightly, which no table lists, gets a date that two runs agree on."""
    machine = made.facts.machines[0]
    nightly = replace(machine.arrivals[-1], new="2.99.0.dev20270101+cu132")
    facts = replace(made.facts, machines=(replace(machine, arrivals=(nightly,)),))
    assert ET.fromstring(atom(facts)).findtext(f"{ATOM}entry/{ATOM}updated") == "1970-01-01T00:00:00Z"


def test_every_group_of_the_library_is_in_the_audit() -> None:
    """Each point names what to look for, and shows cases by patterns of whole groups."""
    assert len({point.title for point in POINTS}) == len(POINTS)
    assert all(point.title.endswith("?") and pattern.endswith("/*") for point in POINTS for pattern in point.patterns)


def luminance(colour: str) -> float:
    """Relative luminance of #rgb or #rrggbb, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def palettes() -> list[Mapping[str, str]]:
    """The colours of the light and of the dark scheme, by name."""
    css = resources.files("replaydrift.report.html").joinpath("static", "report.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    )
    return [light, light | dark]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int) -> None:
    """Every text colour keeps 4.5:1 on each ground it stands on, in both schemes."""
    colours = palettes()[scheme]
    inks = (
        "ink",
        "soft",
        "link",
        "danger",
        "good",
        "warn",
        "warmup",
        "capture",
        "replay",
        "p-keyword",
        "p-string",
        "p-comment",
        "p-number",
        "p-name",
    )
    pairs = [(ink, ground) for ink in inks for ground in ("ground", "raised")]
    pairs += [(ink, "danger-ground") for ink in ("ink", "soft", "danger", "warmup", "capture", "replay")]
    pairs += [(name, name.removesuffix("-ink")) for name in colours if name.endswith("-ink")]
    assert len([name for name in colours if name.endswith("-ink")]) == 11
    low = {
        pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5
    }
    assert low == {}
