"""The page of costs and the plots on it; every cost in here is synthetic."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from statistics import median
from xml.etree import ElementTree as ET

import pytest
from conftest import RELEASES, Made
from making import environment
from measured import costs_of, synthetic_costs

from replaydrift.costs.records import Block, Costs, Subject, Visit
from replaydrift.report import html
from replaydrift.report.html.axes import decades, ticks
from replaydrift.report.html.charts import Row, against_size, bars, paid_after
from replaydrift.report.html.costs import series
from replaydrift.report.html.costs_page import machines
from replaydrift.report.html.inputs import Cost, flat
from replaydrift.report.html.numbers import interval, shown, units, with_unit
from replaydrift.report.html.paths import case_page, release_page
from replaydrift.report.html.plots import plot


def cost(block: str, release: str, *samples: float, metric: str = "capture_ms") -> Cost:
    """One cost of shared-pool/bug on an H200."""
    return Cost("h200", block, release, "shared-pool/bug", metric, samples)


def test_blocks_are_not_joined() -> None:
    """Costs compare within a block: each has a line of its own, with a point a release at its median."""
    svg = ET.fromstring(plot([cost(block, release, 1, 2, 9) for block in "ab" for release in RELEASES[:3]]))
    assert [len(str(line.get("points")).split()) for line in svg.iter("polyline")] == [3, 3]
    titles = [node.text for node in svg.iter("title")]
    assert titles[0] == "2.11.0+cu130: 2 ms (1 to 9, 3 processes), block a"
    assert len(titles) == 6


@pytest.mark.parametrize(
    ("value", "metric", "text", "whole"),
    [
        (3 * 2**20, "pool_bytes", "3 MiB", "3 MiB"),
        (0, "pool_bytes", "0", "0 bytes"),
        (12.34567, "replay_gpu_us", "12.35", "12.35 µs"),
        (96354.2, "eager_gpu_us", "96,354", "96,354 µs"),
        (0.25, "some_other_ms", "0.25", "0.25 ms"),
        (10000, "nodes", "10,000", "10,000"),
    ],
)
def test_numbers_are_short(value: float, metric: str, text: str, whole: str) -> None:
    """Four digits, but all of a count, and bytes in the unit one reads."""
    assert (shown(value, metric), with_unit(value, metric)) == (text, whole)


@pytest.mark.parametrize(("count", "left_out"), [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (20, 5)])
def test_an_interval_leaves_out_what_it_may(count: int, left_out: int) -> None:
    """From six processes on as many of the lowest and highest are left out as 95 % confidence allows, which tables of ranks list."""
    samples = [float(number) for number in range(count)]
    assert interval(samples[::-1]) == (left_out, median(samples), count - 1 - left_out)


def test_an_interval_holds_the_median() -> None:
    """Of a skewed distribution whose median is known, 95 in 100 intervals of seven processes hold it, and the narrower ones of twelve too."""
    chance = random.Random(5)
    for count in (7, 12):
        held = 0
        for _ in range(2000):
            low, _, high = interval([chance.lognormvariate(0, 1) for _ in range(count)])
            held += low <= 1 <= high
        assert held / 2000 > 0.945


def test_ticks_are_round() -> None:
    """An axis starts at its base and has a few round numbers up to the highest, also where there is no span."""
    assert ticks(0, 1.8) == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert len(ticks(0, 7)) in range(3, 8)
    assert len(ticks(0, 0)) > 1
    assert ticks(0, 3 * 2**20, 2**20)[-1] == 3 * 2**20
    assert decades(3, 40) == [1, 10, 100]
    assert decades(10, 10) == [10, 100]


def test_units() -> None:
    """A metric's unit is that of the table; a count has none."""
    assert [units(name) for name in ("capture_ms", "replay_gpu_us", "pool_bytes", "graphs")] == ["ms", "µs", "bytes", ""]


def test_lines_against_size() -> None:
    """A line a time over sizes on logarithmic axes, named at its end; what is not above zero cannot be drawn on them."""
    one = {1: (1.0, 1.0, 1.0), 10: (9.0, 10.0, 12.0), 100: (100.0, 100.0, 100.0)}
    svg = ET.fromstring(against_size({"eager": one, "replay": {1: (0.0, 1.0, 2.0), 10: (5.0, 5.0, 5.0)}}, "Times", "kernels"))
    points = [[float(part) for point in str(line.get("points")).split() for part in point.split(",")] for line in svg.iter("polyline")]
    assert len(points[0]) == 6
    assert len(points[1]) == 2
    left, middle, right = points[0][::2]
    assert middle - left == pytest.approx(right - middle, abs=0.2)
    assert {"eager", "replay", "1", "10", "100"} <= {str(node.text) for node in svg.iter("text")}
    assert "from 1 to 100 µs" in str(svg.get("aria-label"))
    assert against_size({"eager": {1: (0.0, 0.0, 0.0)}}, "Times", "kernels") == ""


def test_names_at_the_ends_of_lines_do_not_cover_each_other() -> None:
    """Lines that end at one place are named one beneath the other."""
    lines = {name: {1: (5.0, 5.0, 5.0)} for name in ("one", "two", "three")}
    svg = ET.fromstring(against_size(lines, "Times", "kernels"))
    places = sorted(float(str(node.get("y"))) for node in svg.iter("text") if node.text in lines)
    assert all(lower - upper >= 14.9 for upper, lower in pairwise(places))


def test_bars() -> None:
    """A bar is as long as its median; a policy that was not measured, or gave wrong results, says so."""
    rows = [Row("eager", (9.0, 10.0, 11.0)), Row("best", (5.0, 5.0, 5.0), "✗ 3 wrong"), Row("other", None, "not measured")]
    svg = ET.fromstring(bars(rows, "trace_gpu_ms", "A trace"))
    long, short = (float(str(node.get("width"))) for node in svg.iter("rect"))
    assert long == pytest.approx(2 * short, abs=0.3)
    texts = [str(node.text) for node in svg.iter("text")]
    assert {"10 ms", "5 ms, ✗ 3 wrong", "–, not measured"} <= set(texts)
    assert bars([Row("other", None)], "trace_gpu_ms", "A trace") == ""


def test_paid_after() -> None:
    """A dot a workload at its number of replays; where none pays, the reason stands in its place."""
    svg = ET.fromstring(paid_after([Row("chain/10", (90.0, 100.0, 110.0)), Row("chain/1", None, "never")], "Break-even"))
    assert [node.text for node in svg.iter("title")] == ["chain/10: 100 replays (90 to 110)"]
    assert "never" in [node.text for node in svg.iter("text")]
    assert paid_after([Row("chain/1", None, "never")], "Break-even") == ""


def made_of(*visits: dict[str, Subject]) -> Costs:
    """Costs of one release in a block of its own."""
    block = Block("one", "measure", RELEASES[:1] * len(visits))
    return Costs(block, environment(RELEASES[0]), tuple(Visit(number, "", 1.0, subjects) for number, subjects in enumerate(visits, 1)))


def workload(capture_ms: float, eager_us: float, **more: float) -> dict[str, Subject]:
    """A visit to a chain whose replay takes 10 µs."""
    metrics = {"capture_ms": capture_ms, "replay_gpu_us": 10.0, "eager_gpu_us": eager_us} | more
    return {"chain/10": Subject("v1", {name: (value,) for name, value in metrics.items()})}


@pytest.mark.parametrize(
    ("visits", "says"),
    [
        ([workload(2.0, 30.0)], "100"),
        ([workload(2.0, 30.0, warmup_ms=1.0)], "150"),
        ([workload(2.0, 30.0), workload(4.0, 30.0), workload(9.0, 30.0)], "200"),
        ([workload(2.0, 10.0)], "never"),
        ([workload(2.0, 30.0), workload(2.0, 30.0), workload(2.0, 9.0)], "not sure"),
    ],
)
def test_break_even(visits: list[dict[str, Subject]], says: str) -> None:
    """Warm-up and capture over what one replay saves against eager code, process by process."""
    (machine,) = machines([made_of(*visits)])
    assert machine.workloads is not None
    table = machine.workloads.table
    assert dict(zip(table.columns, table.rows[0], strict=True))["replays that pay"] == says


def test_the_newest_block_is_shown() -> None:
    """Each section shows the newest release of the newest block that has such subjects, and of a
    glance, or of one release against itself, only for want of others.
    """
    (machine,) = machines(synthetic_costs(("h200",)))
    assert machine.workloads is not None
    assert machine.workloads.shown.words == "torch 2.14.1+cu130, block 20261103-0900-upgrade, 6 processes"
    assert [block[:2] for block in machine.blocks][:2] == [("20261103-0900-upgrade", "upgrade"), ("20261102-0900-aa", "aa")]
    assert machine.blocks[2][3:] == (23, 1)
    glance = Block("20261105-0900-measure", "measure", RELEASES[:2])
    (machine,) = machines([*synthetic_costs(("h200",)), *(costs_of("h200", release, 0, glance) for release in RELEASES[:2])])
    assert machine.workloads is not None
    assert machine.workloads.shown.costs.block.name == machine.compared == "20261103-0900-upgrade"
    alone = Block("20261102-0900-aa", "aa", RELEASES[:1] * 3)
    (machine,) = machines([costs_of("h200", RELEASES[0], 0, alone)])
    assert machine.workloads is not None
    assert machine.workloads.shown.costs.block == alone
    assert machine.changes == ()


def test_changes_are_those_of_the_tests() -> None:
    """What is listed as changed is what the gate's tests say: here all captures on the last release, and nothing else."""
    (machine,) = machines(synthetic_costs(("h200",)))
    assert machine.compared == "20261103-0900-upgrade"
    (step,) = machine.changes
    assert {metric for _, metric, _ in step.changed} == {"capture_ms"}
    assert len(step.changed) == 9
    assert all(re.fullmatch(r"\+30\.\d % \(\+29\.\d % to \+31\.\d %\)", how) for _, _, how in step.changed)
    assert step.same > 500


def test_counts_that_changed() -> None:
    """A count is shown as what it was and what it is."""
    old, new = (costs_of("model", release, number, Block("b", "matrix", RELEASES[:2])) for number, release in enumerate(RELEASES[:2]))
    visits = tuple(
        replace(visit, discarded="", subjects=dict(visit.subjects) | {"chain/10": Subject("v1", {"nodes": (11,), "pool_bytes": (2**21,)})})
        for visit in new.visits
    )
    (machine,) = machines([old, replace(new, visits=visits)])
    (step,) = machine.changes
    assert ("chain/10", "nodes", "10 → 11") in step.changed
    assert ("chain/10", "pool_bytes", "0 bytes → 2 MiB") in step.changed


def test_series_come_in_the_order_of_the_table() -> None:
    """A case's plots start with its replay and not with what the alphabet puts first."""
    found = [cost("a", RELEASES[0], 1.0, metric=metric) for metric in ("capture_ms", "nodes", "replay_gpu_us")]
    assert [one.metric for one in series(found)] == ["replay_gpu_us", "capture_ms", "nodes"]


def test_subjects_that_failed_have_no_costs() -> None:
    """A failure is listed with its reason, and draws nothing."""
    failed = Subject("v1", {}, {}, "RuntimeError: no")
    (machine,) = machines([made_of({"chain/10": failed})])
    assert machine.failures == ((RELEASES[0], "chain/10", "RuntimeError: no"),)
    assert list(flat([made_of({"chain/10": failed})])) == []


def test_the_page(made: Made) -> None:
    """All that was measured is on the page: charts, tables, waste, wrong results, reasons; what a case costs is on its own page too."""
    page = made.page("costs.html")
    gpu, model = page.split('id="on-model"')
    charts = ("What every step costs", "What is paid once", "Break-even", "never: no faster than eager", "waste, ✗ 3 wrong")
    for says in (*charts, "keep_graph is new in 2.8"):
        assert says in gpu
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt; such thing" in gpu
    assert f'href="{case_page("shared-pool/fix-capture-order")}"' in gpu
    assert re.search(r"<th scope=\"row\">pad-to-max</th><td>1</td><td>88\.4%</td>", gpu)
    assert "Counts alone." in model
    assert "Break-even" not in model
    assert " µs" not in model
    assert made.page(case_page("shared-pool/bug")).count('class="plot"') > 5


def test_a_store_without_costs_has_no_page(made: Made, make_site: Callable[..., Made]) -> None:
    """The page is linked from everywhere where there are costs, and from nowhere where there are none."""
    other = make_site(machines=("h200",))
    html.write(other.facts, other.folder)
    link = '<a href="costs.html">Costs</a>'
    assert link in made.page("index.html")
    assert link not in other.page("index.html")


def test_a_release_says_what_it_costs(made: Made) -> None:
    """The page of a release, and the front page, say what costs changed on arriving; a release that was not compared says nothing."""
    page = made.page(release_page(RELEASES[3]))
    gpu, model = page.split('id="on-model"')
    assert "9 costs changed" in gpu
    assert "+30." in gpu
    assert "0 costs changed" in model
    assert "What it costs" not in made.page(release_page(RELEASES[0]))
    assert made.page("index.html").count("costs changed") == 1


def test_how_small_a_change_would_be_seen(made: Made) -> None:
    """A release against itself says how often the tests cry wolf here, and how often each planted slow-down of a headline cost is found."""
    (machine,) = machines(synthetic_costs(("h200",)))
    own = machine.believed
    assert own is not None
    assert own.words.startswith("torch 2.14.1+cu130 against itself, block 20261102-0900-aa: 12 processes")
    assert own.nominal == "5.0 %"
    row = next(dict(zip(own.columns, row, strict=True)) for row in own.rows if row[:2] == ("chain/1000", "replay_gpu_us"))
    assert (row["margin"], row["20 % more"]) == ("1.0 %", "100 %")
    assert "How small a change would be seen" in made.page("costs.html")


def test_too_few_processes_say_nothing_about_noise() -> None:
    """Without a run of a release against itself, or with one that is too short, nothing is claimed."""
    (machine,) = machines([costs_of("h200", RELEASES[0], 0, Block("aa", "aa", RELEASES[:1] * 11))])
    assert machine.believed is None
    (machine,) = machines([costs_of("h200", RELEASES[0], 0, Block("one", "measure", RELEASES[:1] * 12))])
    assert machine.believed is None
    (machine,) = machines([costs_of("model", RELEASES[0], 0, Block("aa", "aa", RELEASES[:1] * 12))])
    assert machine.believed is None
