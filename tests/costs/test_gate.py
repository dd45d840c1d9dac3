"""The gate of costs, on synthetic numbers: the three answers, what is compared at all, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from making import environment
from synthetic_costs import NEW, OLD, block, costs, subject, visit

from replaydrift.costs import statistics
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.costs.gate import compare_costs, costs_between
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import Costs, Subject, Visit
from replaydrift.records import Environment

NOISE = (1.0, 1.003, 0.998, 1.001, 0.999, 1.002)
# What the gate asks of a chain of a thousand kernels, in microseconds and milliseconds that nobody measured.
CHAIN = {"replay_gpu_us": 1115.0, "replay_host_us": 5.0, "capture_ms": 7.7}


def side(release: str = OLD, factors: Mapping[str, float] | None = None, name: str = "chain/1000", noise=NOISE, **counts: int) -> Costs:
    """One release of the block in six visits: the chain's times with a little noise, multiplied by `factors`."""
    made = []
    for number, factor in zip(block().numbers(release), noise, strict=False):
        times = {metric: value * factor * (factors or {}).get(metric, 1.0) for metric, value in CHAIN.items()}
        made.append(Visit(number, "", 30.0, {name: subject(**times, **counts)}))
    return costs(release, *made)


def answers(check: CostCheck) -> dict[str, str]:
    """Metric and answer."""
    return {finding.metric: finding.answer for finding in check.findings}


def of(check: CostCheck, metric: str) -> CostFinding:
    """The finding of one metric."""
    (found,) = (finding for finding in check.findings if finding.metric == metric)
    return found


def test_the_same_is_shown() -> None:
    """Costs that lie within their margins are the same, which is more than not having been found to differ."""
    check = compare_costs(side(nodes=1000), side(NEW, nodes=1000))
    assert set(answers(check).values()) == {"same"}
    assert (check.same, check.family, check.processes, check.cannot_tell, check.news) == (4, 3, (6, 6), False, ())
    assert check.toolkits == ("", "")


def test_a_slower_replay_is_news() -> None:
    """Five percent more GPU time a replay gates, with its ratio, its interval and its direction; an equal capture does not."""
    check = compare_costs(side(), side(NEW, {"replay_gpu_us": 1.05}))
    (found,) = check.news
    assert (found.metric, found.direction, found.answer) == ("replay_gpu_us", "more", "changed")
    assert found.comparison is not None
    assert found.comparison.low < 1.05 < found.comparison.high
    assert found.comparison.ratio == pytest.approx(1.05)
    assert answers(check)["capture_ms"] == "same"


def test_a_faster_replay_is_news_too() -> None:
    """What costs less has changed as well, and a person says why."""
    (found,) = compare_costs(side(), side(NEW, {"replay_gpu_us": 0.9})).news
    assert found.direction == "less"


def test_noise_that_hides_a_change_is_no_pass() -> None:
    """With a fifth of noise nothing can be told, and the smallest change that would have been found is named."""
    noise = (1.0, 1.4, 0.8, 1.2, 0.9, 1.1)
    check = compare_costs(side(noise=noise), side(NEW, noise=noise[::-1]))
    assert check.cannot_tell
    capture = of(check, "capture_ms")
    assert (capture.answer, capture.undecided) == ("cannot-tell", True)
    assert capture.smallest is not None
    assert 0.5 < capture.smallest < 1.5


def test_five_processes_are_too_few() -> None:
    """Nothing is called changed, nor the same, of five processes a side: noise with two modes would separate them too often."""
    check = compare_costs(side(noise=NOISE[:5]), side(NEW, {"replay_gpu_us": 2.0}))
    assert set(answers(check).values()) == {"cannot-tell"}
    assert "5 and 6 processes, and 6 a side are needed" in of(check, "replay_gpu_us").why


def test_counts_compare_for_equality() -> None:
    """One node more is a change that gates, whatever else; processes of one release that disagree about a count settle nothing."""
    found = of(compare_costs(side(nodes=1000), side(NEW, nodes=1001)), "nodes")
    assert (found.answer, found.gates, found.before, found.after, found.direction) == ("changed", True, 1000, 1001, "more")
    new = side(NEW, nodes=1000)
    odd = replace(new.visits[0], subjects={"chain/1000": subject(nodes=999)})
    found = of(compare_costs(side(nodes=1000), replace(new, visits=(odd, *new.visits[1:]))), "nodes")
    assert (found.answer, found.why) == ("cannot-tell", "processes of one release disagree: 1,000 → 999, 1,000")


def test_what_the_gate_does_not_ask_is_only_listed() -> None:
    """A case's replay that became slower is listed and gates nothing; undecided, it is no reason not to pass."""
    check = compare_costs(side(name="rng/fix"), side(NEW, {"replay_gpu_us": 1.5}, name="rng/fix"))
    found = of(check, "replay_gpu_us")
    assert (found.answer, found.headline, found.gates) == ("changed", False, False)
    assert (check.news, check.family) == ((), 0)
    wild = (1.0, 2.0, 0.5, 1.7, 0.8, 1.1)
    assert not compare_costs(side(name="rng/fix", noise=wild), side(NEW, name="rng/fix", noise=wild)).cannot_tell


def test_discarded_visits_do_not_count() -> None:
    """A visit that was discarded is no process of either side."""
    old = side()
    bad = replace(old.visits[0], discarded="throttled", subjects={"chain/1000": subject(replay_gpu_us=9e9)})
    assert compare_costs(replace(old, visits=(*old.visits, bad)), side(NEW)).processes == (6, 6)


def test_another_version_is_not_comparable() -> None:
    """A workload whose own code differs is another workload: not comparable, which the gate does not pass."""
    new = side(NEW)
    other = replace(new, visits=tuple(replace(v, subjects={"chain/1000": replace(v.subjects["chain/1000"], version="v2")}) for v in new.visits))
    check = compare_costs(side(), other)
    assert set(answers(check).values()) == {"not-comparable"}
    assert check.cannot_tell
    assert "version v1 against v2" in check.findings[0].why


PLACES: list[tuple[Environment, str]] = [
    (environment(NEW, gpu="NVIDIA B200"), "measured on 'NVIDIA H200' (engine cuda) and on 'NVIDIA B200' (engine cuda)"),
    (environment(NEW, engine="model"), "(engine model)"),
    (replace(environment(NEW), facts={"gpu": {"name": "NVIDIA H200", "driver": "590.2"}}), "measured under the drivers 580.1 and 590.2"),
]


@pytest.mark.parametrize(("place", "problem"), PLACES)
def test_another_place_is_not_comparable(place: Environment, problem: str) -> None:
    """Another GPU, engine or driver: no time is compared, counts still are, and it is said."""
    check = compare_costs(side(nodes=1000), replace(side(NEW, {"replay_gpu_us": 2.0}, nodes=1001), environment=place))
    assert problem in check.problem
    assert answers(check) == {"nodes": "changed"}
    assert check.cannot_tell


def test_another_block_is_not_comparable() -> None:
    """Times of two blocks do not compare, whatever they are; counts do."""
    new = side(NEW, {"replay_gpu_us": 2.0}, nodes=1000)
    check = compare_costs(side(nodes=1000), replace(new, block=block(OLD, NEW, name="20261202-0900-upgrade")))
    assert "blocks '20261201-0900-upgrade' and '20261202-0900-upgrade'" in check.problem
    assert (answers(check), check.block) == ({"nodes": "same"}, "")


def test_counts_of_the_model_lose_nothing_in_another_block() -> None:
    """Where nothing was timed, as on the CPU model, counts from two blocks are all there is to compare: no problem."""
    def counted(release: str, name: str) -> Costs:
        one = visit(1, chain_1000=subject(nodes=1000))
        return costs(release, one, of=block(release, name=name), where=environment(release, "model", "model", "model"))

    check = compare_costs(counted(OLD, "one"), counted(NEW, "two"))
    assert (check.problem, check.cannot_tell, check.same, check.toolkits) == ("", False, 1, ("", ""))


def test_counts_of_one_release_alone_compare_with_nothing(tmp_path: Path) -> None:
    """Where the model counted one release and not the other, costs say nothing about the two."""
    store = CostStore(tmp_path)
    store.write(costs(OLD, visit(1, chain_1000=subject(nodes=1000)), of=block(OLD), where=environment(OLD, "model", "model", "model")))
    assert costs_between(store, "model", OLD, NEW) is None


def test_toolkits_are_named() -> None:
    """Default wheels compare though their CUDA differs, and both toolkits are there to be named."""
    sides = [replace(side(release), environment=environment(release, torch={"cuda": cuda})) for release, cuda in ((OLD, "13.0"), (NEW, "13.2"))]
    check = compare_costs(*sides)
    assert (check.problem, check.toolkits) == ("", ("13.0", "13.2"))


def changed_last(new: Costs, **metrics: Subject) -> Costs:
    """The same costs with another subject in every visit."""
    return replace(new, visits=tuple(replace(v, subjects=dict(v.subjects) | metrics) for v in new.visits))


def test_what_a_release_lacks_is_no_gap_and_what_failed_is() -> None:
    """A metric that a release is too old for stops nothing; one that failed on a headline subject leaves the gate without an answer."""
    lacking, failed = Subject("v1", {}, {"replay_gpu_us": "new in 2.8"}), Subject("", {}, {}, "OutOfMemoryError: x")
    old = changed_last(side(), **{"mlp/256": lacking, "chain/10": failed})
    new = changed_last(side(NEW), **{name: subject(replay_gpu_us=9.0) for name in ("mlp/256", "chain/10")})
    check = compare_costs(old, new)
    found = {finding.subject: finding for finding in check.findings if finding.answer == "missing"}
    assert (found["mlp/256"].undecided, found["mlp/256"].why) == (False, f"{OLD} lacks it: new in 2.8")
    assert (found["chain/10"].undecided, found["chain/10"].why) == (True, f"{OLD} has no value of it: OutOfMemoryError: x")


def test_a_subject_that_failed_in_some_processes() -> None:
    """What failed in one of six processes is measured in too few, and the failure is named."""
    new = side(NEW)
    failed = replace(new.visits[2], subjects={"chain/1000": Subject("", {}, {}, "OutOfMemoryError: x")})
    found = of(compare_costs(side(), replace(new, visits=(*new.visits[:2], failed, *new.visits[3:]))), "replay_gpu_us")
    assert (found.answer, found.undecided) == ("cannot-tell", True)
    assert found.why == "6 and 5 processes, and 6 a side are needed: OutOfMemoryError: x"


def test_between_stored_releases(tmp_path: Path) -> None:
    """The newest block that has both is taken; without costs there is nothing, with one side's alone there is a problem."""
    store = CostStore(tmp_path)
    assert costs_between(store, "h200", OLD, NEW) is None
    store.write(side(nodes=1000))
    check = costs_between(store, "h200", OLD, NEW)
    assert check is not None
    assert check.problem == f"costs of {OLD} were measured (block '20261201-0900-upgrade'), those of {NEW} were not"
    assert costs_between(store, "h200", OLD, NEW, ["rng/fix"]) is None
    store.write(side(NEW, nodes=1000))
    check = costs_between(store, "h200", OLD, NEW)
    assert check is not None
    assert (check.block, check.pending, check.problem) == ("20261201-0900-upgrade", 0, "")
    late = block(OLD, NEW, NEW, OLD, name="20261202-0900-upgrade")
    store.write(replace(side(nodes=1000), block=late))
    store.write(replace(side(NEW, nodes=1000), block=late))
    check = costs_between(store, "h200", OLD, NEW, ["chain/1000"])
    assert check is not None
    assert (check.block, check.same) == ("20261202-0900-upgrade", 4)
    assert costs_between(store, "h200", OLD, NEW, ["rng/fix"]) is None
    assert costs_between(store, "h200", "2.11.0+cu130", "2.12.1+cu130") is None


def renamed(one: Costs, prefix: str, factor: float) -> Costs:
    """The same costs of other subjects, all times multiplied."""
    visits = []
    for made in one.visits:
        subjects = {
            prefix + name: subject(**{metric: value * factor for metric, (value,) in found.metrics.items()}) for name, found in made.subjects.items()
        }
        visits.append(replace(made, subjects=subjects))
    return replace(one, visits=tuple(visits))


def test_the_gate_is_corrected_by_holm_and_the_list_by_benjamini_and_hochberg() -> None:
    """Each finding carries the p-value that its own family's correction gives, and the two corrections differ."""
    draw = np.random.default_rng(3)
    old, new = (simulated(draw, 0.03, 3, 1.0, release) for release in (OLD, NEW))
    for prefix, correction, other in (
        ("", statistics.holm, statistics.benjamini_hochberg),
        ("g/", statistics.benjamini_hochberg, statistics.holm),
    ):
        findings = compare_costs(renamed(old, prefix, 1.0), renamed(new, prefix, 1.12)).findings
        p_values = [finding.comparison.p for finding in findings if finding.comparison is not None]
        assert len(p_values) == len(findings) == 21
        assert [finding.adjusted for finding in findings] == pytest.approx(list(correction(p_values)))
        assert list(other(p_values)) != pytest.approx(list(correction(p_values)))


def test_the_gate_is_short() -> None:
    """Sixty headlines at the most: what each is tested at depends on how many there are."""
    assert sum(len(metric.headline) for metric in METRICS.values()) <= 60


def simulated(draw: np.random.Generator, sd: float, subjects: int, factor: float, release: str) -> Costs:
    """A release whose log medians vary by `sd` between processes in every metric of `subjects` chains; chain/10 is slower by `factor`."""
    names = ["chain/10", "chain/100", "chain/1000", "chain/10000", *(f"mlp/{n}" for n in range(subjects))]
    visits = []
    for number in block().numbers(release):
        times = draw.lognormal(3, 0, (len(names), 3)) * np.exp(draw.normal(0, sd, (len(names), 3)))
        times[0, 0] *= factor
        made = {name: subject(**dict(zip(CHAIN, map(float, row), strict=True))) for name, row in zip(names, times, strict=True)}
        visits.append(Visit(number, "", 30.0, made))
    return costs(release, *visits)


def test_five_percent_are_found_and_nothing_else() -> None:
    """In 60 simulated upgrades with half a percent of noise and 48 metrics in the gate, five percent in one replay are always found."""
    draw = np.random.default_rng(5)
    found = [compare_costs(simulated(draw, 0.005, 12, 1.0, OLD), simulated(draw, 0.005, 12, 1.05, NEW)) for _ in range(60)]
    assert sum(any(f.name == "chain/10 replay_gpu_us" for f in check.news) for check in found) >= 58
    assert sum(len(check.news) > 1 for check in found) <= 3
    assert found[0].family == 48
