"""Prices from stored costs; the costs in here are synthetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from making import environment
from synthetic_costs import NEW, OLD, block, costs, subject

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.curves import prices_of, stored_prices
from replaydrift.costs.lengths import trace
from replaydrift.costs.policies import MEASURED, bucket_for, buckets_of, padding
from replaydrift.costs.records import Costs, Visit
from replaydrift.errors import TraceError

BEFORE, CAPTURE, POOL = 50_000, 2.5, 3000


def visit(
    number: int,
    request: Callable[[int], float],
    traces: tuple[str, ...] = ("uniform", "long-tailed", "requests"),
    policies: tuple[str, ...] = MEASURED,
) -> Visit:
    """A visit in which a request costs so many microseconds at a size, ten times that eagerly; a bucket 2.5 ms and 3000 bytes."""
    subjects = {}
    for name in traces:
        lengths = trace(name)
        for policy in policies:
            buckets = buckets_of(policy, lengths)
            sizes = [bucket_for(length, buckets) for length in lengths]
            us = sum(request(size) if size else 10 * request(length) for length, size in zip(lengths, sizes, strict=True))
            of = {"trace_gpu_ms": us / 1000, "padded_elements": padding(lengths, buckets).padded_elements}
            if buckets:
                of |= {"trace_capture_ms": CAPTURE * len(buckets), "own_pools_reserved_bytes": BEFORE + POOL * len(buckets)}
            subjects[f"bucketing/decoder/{name}/{policy}"] = subject(**of)
    return Visit(number, "2026-12-01T09:00:00+00:00", 30.0, subjects | {"decoder/128": subject(replay_gpu_us=1e9)})


def bent(size: int) -> float:
    """20 µs up to a size of 128, then ever more."""
    return 20 + max(size - 128, 0) / 8 + max(size - 256, 0) / 4


def test_a_curve_is_found_again() -> None:
    """Where traces cost what their requests cost on a curve with bends, that curve is what comes out."""
    prices = prices_of(costs(OLD, visit(1, bent)), "decoder")
    assert prices is not None
    assert [prices.step.at(size) for size in (1, 64, 128, 200, 256, 384, 512)] == pytest.approx([20, 20, 20, 29, 36, 84, 132], rel=1e-6)
    assert prices.source == (
        "A request costs what explains 28 traces through the decoder of replaydrift to within 0.0%, copies of inputs and outputs included "
        "(NVIDIA H200, torch 2.13.0+cu130, block 20261201-0900-upgrade)."
    )


def test_captures_pools_and_eager_code() -> None:
    """A bucket's capture and pool are told from how lists of many and of few differ; what was there before is none of a bucket's."""
    prices = prices_of(costs(OLD, visit(1, lambda size: 12 + size / 16)), "decoder")
    assert prices is not None
    assert prices.capture is not None
    assert prices.pool_bytes is not None
    assert prices.eager is not None
    for size in (1, 100, 512):
        assert prices.capture.at(size) == pytest.approx(2500)
        assert prices.pool_bytes.at(size) == pytest.approx(3000)
        assert prices.eager.at(size) == pytest.approx(120 + size / 1.6)


def test_the_median_of_visits() -> None:
    """One slow visit of three changes nothing."""
    visits = [visit(number, lambda size, slow=slow: slow * (12 + size / 16)) for number, slow in ((1, 1.0), (4, 9.0), (5, 1.0))]
    prices = prices_of(costs(OLD, *visits), "decoder")
    assert prices is not None
    assert prices.step.at(160) == pytest.approx(22)


def test_few_traces_give_a_line() -> None:
    """With no more than a few lists there is no telling where a curve bends."""
    prices = prices_of(costs(OLD, visit(1, lambda size: 12 + size / 16, ("uniform",), ("pad-to-max", "powers-of-two", "even-4"))), "decoder")
    assert prices is not None
    assert len(prices.step.points) == 2
    assert prices.step.at(160) == pytest.approx(22)
    assert prices.eager is None


def test_what_does_not_fit_is_told() -> None:
    """How far the worst trace is from the curve stands beside it."""
    one = visit(1, lambda size: 12 + size / 16)
    name = "bucketing/decoder/uniform/even-8"
    padded = one.subjects[name].metrics["padded_elements"][0]
    odd = dict(one.subjects) | {name: subject(trace_gpu_ms=99.0, padded_elements=padded)}
    prices = prices_of(costs(OLD, Visit(1, one.began, 30.0, odd)), "decoder")
    assert prices is not None
    assert "to within 9" in prices.source


def test_too_little_to_tell() -> None:
    """One list of buckets, another model, or a trace that is another by now gives no prices."""
    lone = visit(1, bent, ("uniform",), ("pad-to-max",))
    assert prices_of(costs(OLD, lone), "decoder") is None
    assert prices_of(costs(OLD, visit(1, bent)), "mlp") is None
    others = {name: subject(trace_gpu_ms=1.0, padded_elements=1) for name in visit(1, bent).subjects}
    assert prices_of(costs(OLD, Visit(1, lone.began, 1.0, others)), "decoder") is None


def stored(folder: Path, *several: Costs) -> Path:
    """A store of these costs."""
    for one in several:
        CostStore(folder).write(one)
    return folder


def slow(number: int, factor: float) -> Visit:
    """A visit in which a request costs ten microseconds, so many times."""
    return visit(number, lambda _: 10 * factor, ("uniform",))


def test_the_newest_block_and_release(tmp_path: Path) -> None:
    """Of several, the newest block, and in it the newest release, unless another is asked for."""
    later = block(name="20261202-0900-upgrade")
    results = stored(tmp_path, costs(OLD, slow(1, 1)), costs(OLD, slow(1, 2), of=later), costs(NEW, slow(2, 3), of=later))
    for release, each in ((None, 30), ("2.13.0", 20), (NEW, 30)):
        prices = stored_prices(results, None, release, "decoder")
        assert prices is not None
        assert prices.step.at(128) == pytest.approx(each)


def test_nothing_stored(tmp_path: Path) -> None:
    """An empty store has no prices; a machine or release that was asked for and has none is an error that says what to do."""
    assert stored_prices(tmp_path, None, None, "decoder") is None
    with pytest.raises(TraceError, match=r"on torch 2\.9\.0 are stored of machine 'h200'.*measure them"):
        stored_prices(tmp_path, "h200", "2.9.0", "decoder")
    counts = {name: subject(buckets=1, padded_elements=9) for name in slow(1, 1).subjects}
    model = costs(OLD, Visit(1, "2026-12-01T09:00:00+00:00", 1.0, counts), where=environment(OLD, "model", "CPU model", "model"))
    assert stored_prices(stored(tmp_path, model), None, None, "decoder") is None


def test_two_machines(tmp_path: Path) -> None:
    """Which machine's prices are meant is not guessed."""
    results = stored(tmp_path, costs(OLD, slow(1, 1)), costs(OLD, slow(1, 1), where=environment(OLD, "a100", "NVIDIA A100")))
    with pytest.raises(TraceError, match="2 machines have costs of 'decoder': say which with --machine NAME, one of a100, h200"):
        stored_prices(results, None, None, "decoder")
    assert stored_prices(results, "a100", None, "decoder") is not None
