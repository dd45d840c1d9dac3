"""Prices from stored costs; the costs in here are synthetic."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import environment
from synthetic_costs import NEW, OLD, block, costs, subject, visit

from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.curves import prices_of, stored_prices
from replaydrift.costs.lengths import REQUESTS, trace
from replaydrift.costs.policies import buckets_of, padding
from replaydrift.costs.records import Costs, Visit
from replaydrift.errors import TraceError


def at_lengths(number: int, factor: float = 1.0) -> Visit:
    """A visit that measured the decoder at two lengths, and things that are none of its lengths."""
    small = subject(replay_gpu_us=[9.0 * factor, 10.0 * factor, 90.0], eager_gpu_us=50.0, capture_ms=2.0, warmup_ms=1.0, pool_bytes=1000)
    large = subject(replay_gpu_us=30.0 * factor, eager_gpu_us=60.0, capture_ms=4.0, pool_bytes=3000)
    return visit(number, decoder_128=small, decoder_384=large, decoder_wide=subject(replay_gpu_us=1.0), mlp_256=subject(replay_gpu_us=5.0))


def traced(number: int, fixed: float, slope: float) -> Visit:
    """A visit that measured traces whose requests cost a fixed part and a part for each element."""
    lengths = trace("long-tailed")
    subjects = {}
    for policy in ("pad-to-max", "powers-of-two", "even-4"):
        done = padding(lengths, buckets_of(policy, lengths))
        ms = (fixed * REQUESTS + slope * done.padded_elements) / 1000
        subjects[f"bucketing/mlp/long-tailed/{policy}"] = subject(
            trace_gpu_ms=ms, padded_elements=done.padded_elements, buckets=len(done.requests), trace_capture_ms=2.5 * len(done.requests),
        )  # fmt: skip
    subjects["bucketing/mlp/long-tailed/eager"] = subject(trace_gpu_ms=999.0, padded_elements=sum(lengths), buckets=0)
    return Visit(number, "2026-12-01T09:00:00+00:00", 30.0, subjects)


def test_points_at_lengths_that_were_measured() -> None:
    """A price is the median over visits of the median within each; a capture comes with its warm-up."""
    prices = prices_of(costs(OLD, at_lengths(1), at_lengths(4, 1.2), at_lengths(5, 1.1)), "decoder")
    assert prices is not None
    assert prices.step.points == ((128, pytest.approx(11.0)), (384, pytest.approx(33.0)))
    assert prices.eager is not None
    assert prices.eager.at(256) == 55
    assert prices.capture is not None
    assert prices.capture.points == ((128, 3000.0), (384, 4000.0))
    assert prices.pool_bytes is not None
    assert prices.pool_bytes.at(256) == 2000
    assert "128, 384 (NVIDIA H200, torch 2.13.0+cu130, block 20261201-0900-upgrade)" in prices.source


def test_a_line_through_traces() -> None:
    """Where no two lengths were measured by themselves, traces tell what a request and an element cost."""
    prices = prices_of(costs(OLD, traced(1, 20, 0.125), traced(4, 20, 0.125)), "mlp")
    assert prices is not None
    assert prices.step.at(0) == pytest.approx(20)
    assert prices.step.at(100) == pytest.approx(32.5)
    assert prices.capture is not None
    assert prices.capture.at(77) == pytest.approx(2500)
    assert "a line fitted to 3 traces" in prices.source


def test_too_little_to_tell() -> None:
    """One length, one trace, or a visit that was discarded gives no prices."""
    lone = traced(1, 20, 0.1)
    one = Visit(1, lone.began, 1.0, {"bucketing/mlp/long-tailed/even-4": lone.subjects["bucketing/mlp/long-tailed/even-4"]})
    assert prices_of(costs(OLD, at_lengths(1)), "mlp") is None
    assert prices_of(costs(OLD, one), "mlp") is None
    assert prices_of(costs(OLD, visit(1, "throttled", decoder_1=subject(replay_gpu_us=1.0), decoder_2=subject(replay_gpu_us=1.0))), "decoder") is None


def stored(folder: Path, *several: Costs) -> Path:
    """A store of these costs."""
    for one in several:
        CostStore(folder).write(one)
    return folder


def test_the_newest_block_and_release(tmp_path: Path) -> None:
    """Of several, the newest block, and in it the newest release, unless another is asked for."""
    later = block(name="20261202-0900-upgrade")
    results = stored(tmp_path, costs(OLD, at_lengths(1)), costs(OLD, at_lengths(1, 2), of=later), costs(NEW, at_lengths(2, 3), of=later))
    for release, first in ((None, 30), ("2.13.0", 20), (NEW, 30)):
        prices = stored_prices(results, None, release, "decoder")
        assert prices is not None
        assert prices.step.at(128) == pytest.approx(first)


def test_nothing_stored(tmp_path: Path) -> None:
    """An empty store has no prices; a machine or release that was asked for and has none is an error that says what to do."""
    assert stored_prices(tmp_path, None, None, "decoder") is None
    with pytest.raises(TraceError, match=r"on torch 2\.9\.0 are stored of machine 'h200'.*measure them"):
        stored_prices(tmp_path, "h200", "2.9.0", "decoder")
    counts = costs(OLD, visit(1, decoder_128=subject(nodes=9), decoder_256=subject(nodes=9)), where=environment(OLD, "model", "CPU model", "model"))
    assert stored_prices(stored(tmp_path, counts), None, None, "decoder") is None


def test_two_machines(tmp_path: Path) -> None:
    """Which machine's prices are meant is not guessed."""
    results = stored(tmp_path, costs(OLD, at_lengths(1)), costs(OLD, at_lengths(1), where=environment(OLD, "a100", "NVIDIA A100")))
    with pytest.raises(TraceError, match="2 machines have costs of 'decoder': say which with --machine NAME, one of a100, h200"):
        stored_prices(results, None, None, "decoder")
    assert stored_prices(results, "a100", None, "decoder") is not None
