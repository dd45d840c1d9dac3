"""A/A runs on synthetic numbers: what the calibration computes for all splits is what the gate says of each, and its rates are known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from making import environment
from synthetic_costs import OLD, block, costs, subject

from replaydrift.cli import cli
from replaydrift.costs import calibration
from replaydrift.costs.calibration import CalibrationError, calibrate, planted
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.gate import compare_costs
from replaydrift.costs.records import Costs, Visit
from replaydrift.costs.splits import ways
from replaydrift.errors import StoreError

Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

METRICS = ("replay_gpu_us", "replay_host_us", "capture_ms")
CHAINS = ("chain/10", "chain/100", "chain/1000", "chain/10000")


def half_a_percent(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Normal noise of half a percent."""
    return draw.normal(0, 0.005, shape)


def release(visits: int, names: tuple[str, ...] = CHAINS, noise: Noise = half_a_percent, seed: int = 7) -> Costs:
    """One release in so many visits, that nobody measured: every log median has the noise and nothing else."""
    draw = np.random.default_rng(seed)
    logs = 3 + noise(draw, (visits, len(names), len(METRICS)))
    made = [
        {name: subject(**dict(zip(METRICS, map(float, np.exp(row)), strict=True))) for name, row in zip(names, table, strict=True)} for table in logs
    ]
    of = block(*[OLD] * visits, name="20261201-0900-aa", purpose="aa")
    return costs(OLD, *(Visit(number, "", 30.0, subjects) for number, subjects in enumerate(made, 1)), of=of)


def test_twelve_visits_split_in_every_way() -> None:
    """Two sides of six out of twelve can be had in 462 ways, and each is taken once."""
    every = [(tuple(old), tuple(new)) for old, new in ways(12, 6, 1000, seed=1)]
    assert len({frozenset(split) for split in every}) == len(every) == 462
    assert all(set(old) | set(new) == set(range(12)) for old, new in every)


def test_splits_of_more_visits_are_drawn() -> None:
    """Of fourteen visits six a side are drawn, the same ones for the same seed."""
    every = list(ways(14, 6, 50, seed=1))
    assert len(every) == 50
    assert all(len(set(old) | set(new)) == 12 for old, new in every)
    assert every == list(ways(14, 6, 50, seed=1)) != list(ways(14, 6, 50, seed=2))


def test_it_says_of_each_split_what_the_gate_says() -> None:
    """Shares over all splits are those of the gate itself, asked about each split in turn."""
    whole = release(12, (*CHAINS, "g/one", "g/two"), lambda draw, shape: draw.normal(0, 0.02, shape))
    found = calibrate(whole, splits=100)
    gate, same = 0, 0
    every = list(ways(12, 6, 100, 1))
    for sides in every:
        old, new = (replace(whole, visits=tuple(whole.visits[number] for number in side)) for side in sides)
        check = compare_costs(old, new)
        gate += any(finding.answer == "changed" and finding.headline for finding in check.findings)
        same += next(finding for finding in check.findings if finding.name == "chain/10 capture_ms").answer == "same"
    assert found.splits == len(every)
    assert found.with_margins.gate == gate / len(every)
    noise = next(one for one in found.noise if (one.subject, one.metric) == ("chain/10", "capture_ms"))
    assert noise.same == same / len(every) > 0


def test_a_planted_change_is_the_gates_too() -> None:
    """The share of splits in which a planted slow-down is found is that of the gate with one side's numbers multiplied."""
    whole = release(12, noise=lambda draw, shape: draw.normal(0, 0.018, shape))
    (noise,) = (one for one in calibrate(whole, splits=100).noise if (one.subject, one.metric) == ("chain/100", "replay_gpu_us"))
    found, every = 0, list(ways(12, 6, 100, 1))
    for sides in every:
        old, new = (replace(whole, visits=tuple(whole.visits[number] for number in side)) for side in sides)
        slow = []
        for visit in new.visits:
            one = visit.subjects["chain/100"]
            metrics = dict(one.metrics) | {"replay_gpu_us": tuple(value * 1.05 for value in one.metrics["replay_gpu_us"])}
            slow.append(replace(visit, subjects=dict(visit.subjects) | {"chain/100": replace(one, metrics=metrics)}))
        news = compare_costs(old, replace(new, visits=tuple(slow))).news
        found += any(finding.name == "chain/100 replay_gpu_us" for finding in news)
    assert noise.found[calibration.PLANTED.index(0.05)] == pytest.approx(found / len(every))
    assert 0.1 < noise.found[calibration.PLANTED.index(0.05)] < 1


def test_false_alarms_stay_below_the_nominal_rate() -> None:
    """Over a dozen A/A runs of a gate of 60 metrics with no margins, the mean share of splits with any flag is at most 5 %."""
    names = (*CHAINS, *(f"mlp/{number}" for number in range(16)), *(f"g/case-{number}" for number in range(10)))
    runs = [calibrate(release(12, names, seed=seed), splits=150) for seed in range(12)]
    assert np.mean([run.without_margins.gate for run in runs]) <= 0.05
    assert np.mean([run.without_margins.listed for run in runs]) <= 0.05
    assert max(run.with_margins.gate for run in runs) == 0
    assert all(run.without_margins.gate > 0 for run in runs[:1])


def test_half_a_percent_of_noise_finds_five_percent() -> None:
    """With half a percent between processes, five percent more in a replay is found in at least 95 % of splits: sharp enough."""
    found = calibrate(release(12))
    assert found.calibrated
    assert found.sharp
    assert found.power is not None
    for one in found.noise:
        assert list(one.found) == sorted(one.found)
        assert one.sd == pytest.approx(0.005, rel=0.6)
    assert not calibrate(release(12, noise=lambda draw, shape: draw.normal(0, 0.05, shape))).sharp


def test_the_needed_margin_makes_most_splits_the_same() -> None:
    """With the margin that the run asks for, 95 % of splits of an unchanged metric are called the same; noisy ones ask for more."""
    quiet, loud = calibrate(release(12)), calibrate(release(12, noise=lambda draw, shape: draw.normal(0, 0.05, shape)))
    assert quiet.noise[0].needed_margin < 0.015
    assert loud.noise[0].needed_margin > 0.05
    assert all(one.same >= 0.95 for one in quiet.noise if one.needed_margin <= one.margin)


def test_drift_is_seen() -> None:
    """A metric that creeps up from visit to visit varies much less between neighbours than over the whole run."""

    def creeping(draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.linspace(0, 0.1, shape[0])[:, None, None] + draw.normal(0, 0.003, shape)

    one = calibrate(release(12, noise=creeping)).noise[0]
    assert one.adjacent < one.sd / 3


def test_another_number_than_the_median_may_be_quieter() -> None:
    """Where processes differ in how often they are disturbed and not in their best, the lowest sample varies less than the median."""
    whole = release(12)
    visits = []
    for number, visit in enumerate(whole.visits):
        disturbed = tuple(5.0 * (1.3 if at < number else 1.0) for at in range(20))
        one = replace(visit.subjects["chain/10"], metrics=dict(visit.subjects["chain/10"].metrics) | {"capture_ms": disturbed})
        visits.append(replace(visit, subjects=dict(visit.subjects) | {"chain/10": one}))
    (noise,) = (one for one in calibrate(replace(whole, visits=tuple(visits))).noise if (one.subject, one.metric) == ("chain/10", "capture_ms"))
    assert noise.sd_lowest == noise.sd_quartile == 0
    assert noise.sd > 0.05


def test_what_cannot_calibrate_is_an_error() -> None:
    """Eleven visits do not make two sides of six, and counts alone need no calibration."""
    with pytest.raises(CalibrationError, match="11 visits that count, and two sides of 6 need 12"):
        calibrate(release(11))
    counted = costs(OLD, *(Visit(number, "", 1.0, {"chain/10": subject(nodes=10)}) for number in range(1, 13)))
    with pytest.raises(CalibrationError, match="no time that all visits measured"):
        calibrate(counted)


def test_a_metric_that_a_visit_lacks_is_left_out() -> None:
    """Only what every visit measured can be split; the rest is counted."""
    whole = release(12)
    first = replace(whole.visits[0], subjects={name: one for name, one in whole.visits[0].subjects.items() if name != "chain/10"})
    found = calibrate(replace(whole, visits=(first, *whole.visits[1:])))
    assert (found.left_out, len(found.noise)) == (3, 9)


def test_sixteen_visits_split_by_ranks() -> None:
    """Two sides of eight are compared by ranks, and five percent are found."""
    found = calibrate(release(16), side=8, splits=60)
    assert (found.visits, found.side, found.splits) == (16, 8, 60)
    assert found.calibrated
    assert found.sharp


def slowed(whole: Costs, name: str, metric: str, factor: float) -> Costs:
    """The same release with one metric of one subject multiplied, as another block."""
    visits = []
    for visit in whole.visits:
        one = visit.subjects[name]
        metrics = dict(one.metrics) | {metric: tuple(value * factor for value in one.metrics[metric])}
        visits.append(replace(visit, subjects=dict(visit.subjects) | {name: replace(one, metrics=metrics)}))
    return replace(whole, visits=tuple(visits), block=replace(whole.block, name="planted", purpose="measure"))


def test_a_block_with_planted_slow_downs() -> None:
    """What was slowed down is found, with its ratio; what was not is the control, and is not found."""
    slow = slowed(release(6, seed=8), "chain/100", "replay_gpu_us", 1.05)
    tests = planted(release(12), slow, splits=100)
    found = {(one.subject, one.metric): one for one in tests}
    assert found["chain/100", "replay_gpu_us"].found >= 0.95
    assert found["chain/100", "replay_gpu_us"].ratio == pytest.approx(1.05, abs=0.01)
    assert max(one.found for name, one in found.items() if name != ("chain/100", "replay_gpu_us")) <= 0.05
    with pytest.raises(CalibrationError, match="5 visits that count, and 6 are needed"):
        planted(release(12), release(5))
    with pytest.raises(CalibrationError, match="not the same release"):
        planted(release(12), replace(slow, environment=environment("2.15.0+cu132")))


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of `replaydrift aa`."""
    result = CliRunner().invoke(cli, ["aa", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_command_judges_the_newest_run(tmp_path: Path) -> None:
    """`replaydrift aa` takes the newest A/A block, prints rates and power curves, and fails where slow-downs would be missed."""
    store = CostStore(tmp_path)
    with pytest.raises(StoreError, match="costs of 0 machines"):
        run("--results", str(tmp_path))
    store.write(release(12))
    store.write(replace(release(12), block=replace(release(12).block, name="20261202-0900-upgrade", purpose="upgrade")))
    code, text = run("--results", str(tmp_path), "--splits", "50")
    assert code == 0
    assert "block 20261201-0900-aa: 12 visits, 50 splits into two sides of 6" in text
    assert "no share of false alarms lies above the nominal rate" in text
    assert "chain/1000" in text
    noisy = release(12, noise=lambda draw, shape: draw.normal(0, 0.05, shape))
    store.write(replace(noisy, block=replace(noisy.block, name="20261203-0900-aa")))
    code, text = run("--results", str(tmp_path), "--splits", "50", "--json")
    tree = json.loads(text)
    assert (code, tree["block"], tree["calibrated"], tree["sharp"]) == (1, "20261203-0900-aa", True, False)


def test_the_command_finds_what_was_planted(tmp_path: Path) -> None:
    """`--planted` names a block with slow-downs; blocks that are not there are listed."""
    store = CostStore(tmp_path)
    store.write(release(12))
    store.write(slowed(release(6, seed=8), "chain/100", "replay_gpu_us", 1.05))
    code, text = run("--results", str(tmp_path), "--splits", "50", "--planted", "planted")
    assert code == 0
    assert re.search(r"chain/100 +replay_gpu_us +× 1.0\d\d +100 %", text)
    with pytest.raises(StoreError, match="no block 'other'.*20261201-0900-aa, planted"):
        run("--results", str(tmp_path), "--planted", "other")
