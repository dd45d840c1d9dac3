"""Host times at one pace of the host, on synthetic numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from making import environment
from synthetic_costs import NEW, OLD, block, costs, subject

from replaydrift.costs.calibration import calibrate, planted
from replaydrift.costs.gate import compare_costs
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.pace import is_pace, paced_values
from replaydrift.costs.records import Costs, Subject, Visit
from replaydrift.history.cost_lines import CostPoint

# How slow the host was in each visit, and what the work then takes: the factor is the host's alone.
PACES = (1.0, 1.3, 0.8, 1.25, 0.75, 1.1)


def one(pace: float, capture_ms: float = 8.0, replay_us: float = 100.0, **more: float) -> Subject:
    """What a visit measures on a host of this pace: all of the host's times are longer by it, those of the GPU are not."""
    own = {name: value * pace for name, value in {"capture_ms": capture_ms, "capture_pace_us": 300.0}.items()}
    return subject(**own, replay_gpu_us=replay_us, **more)


def side(release: str, capture_ms: float, paces: tuple[float, ...] = PACES) -> Costs:
    """A release of the block, one visit a pace."""
    numbers = block().numbers(release)
    return costs(release, *(Visit(number, "", 30.0, {"chain/1000": one(pace, capture_ms)}) for number, pace in zip(numbers, paces, strict=True)))


def test_the_hosts_pace_is_taken_out_of_its_times() -> None:
    """Captures that differ by how fast the host was, and by nothing else, are equal; what the GPU took stays as it is."""
    old, new = side(OLD, 8.0), side(NEW, 10.0, PACES[::-1])
    before, after = paced_values((old, new), "chain/1000", "capture_ms")
    mean = float(np.exp(np.mean(np.log(PACES))))
    assert before == pytest.approx([8.0 * mean] * 6)
    assert after == pytest.approx([10.0 * mean] * 6)
    assert paced_values((old, new), "chain/1000", "replay_gpu_us") == [(100.0,) * 6] * 2


def test_a_change_is_seen_behind_a_host_of_many_paces() -> None:
    """A quarter more of capture is found where the pace of processes differs by three quarters, and the pace is no finding."""
    check = compare_costs(side(OLD, 8.0), side(NEW, 10.0, PACES[::-1]))
    answers = {finding.metric: finding.answer for finding in check.findings}
    assert answers == {"capture_ms": "changed", "replay_gpu_us": "same"}
    (found,) = (finding for finding in check.findings if finding.metric == "capture_ms")
    assert found.comparison is not None
    assert found.comparison.ratio == pytest.approx(1.25)
    assert found.after == pytest.approx(1.25 * (found.before or 0))


def test_each_sample_has_the_pace_of_its_own_moment() -> None:
    """A host that slows down half way through a visit changes nothing, since each sample has a beat beside it."""
    steady = subject(capture_ms=[8.0, 8.0, 8.0], capture_pace_us=[300.0, 300.0, 300.0])
    slowing = subject(capture_ms=[8.0, 16.0, 16.0], capture_pace_us=[300.0, 600.0, 600.0])
    made = costs(OLD, Visit(1, "", 30.0, {"chain/1": steady}), Visit(4, "", 30.0, {"chain/1": slowing}))
    (values,) = paced_values((made,), "chain/1", "capture_ms")
    assert values[0] == pytest.approx(values[1])
    fewer = subject(capture_ms=[8.0, 16.0, 16.0], capture_pace_us=[600.0, 600.0])
    made = replace(made, visits=(made.visits[0], Visit(4, "", 30.0, {"chain/1": fewer})))
    (values,) = paced_values((made,), "chain/1", "capture_ms")
    assert values[0] == pytest.approx(values[1])


def test_without_a_pace_times_are_as_measured() -> None:
    """Where any visit has no pace, as in costs of before there was one, or the two sides ran different Pythons, nothing is taken out."""
    whole = side(OLD, 8.0)
    older = replace(whole, visits=(*whole.visits[:5], Visit(12, "", 30.0, {"chain/1000": subject(capture_ms=8.0)})))
    plain = [older.values("chain/1000", "capture_ms")]
    assert paced_values((older,), "chain/1000", "capture_ms") == plain
    facts = [{**environment(name).facts, "python": version} for name, version in ((OLD, "3.11.7"), (NEW, "3.12.3"))]
    sides = [
        replace(made, environment=replace(made.environment, facts=own))
        for made, own in zip((whole, side(NEW, 10.0)), facts, strict=True)
    ]
    assert paced_values(sides, "chain/1000", "capture_ms") == [made.values("chain/1000", "capture_ms") for made in sides]


def test_a_calibration_says_what_the_pace_is_worth() -> None:
    """The noise of a host time with and without its pace; a metric of the GPU has only one, and the pace itself is none."""
    draw = np.random.default_rng(3)
    visits = [
        Visit(number, "", 30.0, {"chain/1000": one(float(np.exp(draw.normal(0, 0.2))), 8.0 * float(np.exp(draw.normal(0, 0.01))))})
        for number in range(1, 13)
    ]
    made = costs(OLD, *visits, of=block(*[OLD] * 12, purpose="aa"))
    found = {noise.metric: noise for noise in calibrate(made, splits=20).noise}
    assert set(found) == {"capture_ms", "replay_gpu_us"}
    assert found["capture_ms"].sd < 0.03
    assert (found["capture_ms"].sd_plain or 0) > 0.1
    assert found["replay_gpu_us"].sd_plain is None


def test_a_planted_slow_down_is_found_whatever_the_pace_of_its_block() -> None:
    """A block on a slower host, with captures a fifth longer: the fifth is found, and not the host."""
    plain = costs(OLD, *(Visit(number, "", 30.0, {"chain/1000": one(pace)}) for number, pace in enumerate(PACES, 1)), of=block(*[OLD] * 6))
    slow = replace(plain, visits=tuple(replace(visit, subjects={"chain/1000": one(2.0, 8.0 * 1.2)}) for visit in plain.visits))
    found = {test.metric: test for test in planted(plain, slow, splits=10)}
    assert found["capture_ms"].ratio == pytest.approx(1.2)
    assert found["capture_ms"].found == 1.0
    assert found["replay_gpu_us"].found == 0.0


def test_what_names_a_pace_has_one_and_asv_draws_none() -> None:
    """The pace of a metric is a metric of that kind; it is drawn nowhere as a cost."""
    for metric in METRICS.values():
        assert not metric.pace or (is_pace(metric.pace) and metric.clock == "host"), metric.name
    point = CostPoint.of(side(OLD, 8.0))
    assert set(point.values["chain/1000"]) == {"capture_ms", "replay_gpu_us"}
