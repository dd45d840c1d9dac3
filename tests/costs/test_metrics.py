"""The table of metrics: what its rows promise."""

from __future__ import annotations

import re

from replaydrift.costs.metrics import METRICS, is_headline


def test_a_name_ends_in_its_unit() -> None:
    """Nobody has to look up in what unit a number is."""
    for metric in METRICS.values():
        assert not metric.unit or metric.name.endswith("_" + metric.unit), metric.name
        assert metric.unit or not re.search(r"_(us|ms|s|bytes|mib)$", metric.name), metric.name


def test_what_is_timed_has_a_clock_and_a_margin_and_what_is_counted_has_neither() -> None:
    """An exact count compares for equality; a time never does. The host's pace compares with nothing."""
    for metric in METRICS.values():
        if metric.clock == "pace":
            assert (metric.margin, metric.headline) == (0.0, ()), metric.name
            continue
        assert metric.exact == (metric.clock == "") == (metric.margin == 0.0), metric.name
        assert not (metric.exact and metric.headline), metric.name


def test_every_metric_says_what_it_includes() -> None:
    """A number whose meaning is not said cannot be compared with anybody's."""
    assert all(len(metric.meaning) > 10 for metric in METRICS.values() if metric.unit)
    assert all(metric.meaning for metric in METRICS.values())


def test_the_margins_are_those_of_the_rule() -> None:
    """GPU replay 1 %, padding and bucketing 3 %, host times 10 %."""
    assert METRICS["replay_gpu_us"].margin == 0.01
    assert METRICS["trace_gpu_ms"].margin == 0.03
    assert {metric.margin for metric in METRICS.values() if metric.clock == "host"} == {0.10}


def test_a_headline_is_a_metric_at_a_standard_size() -> None:
    """The gate looks at a few pairs only, and at none that it does not know."""
    assert is_headline("chain/1000", "replay_gpu_us")
    assert not is_headline("chain/1", "replay_gpu_us")
    assert is_headline("chain/1", "replay_host_us")
    assert is_headline("bucketing/decoder/requests/powers-of-two", "trace_gpu_ms")
    assert not is_headline("rng/default-auto", "replay_gpu_us")
    assert not is_headline("chain/1000", "nodes")
    assert not is_headline("chain/1000", "no-such-metric")
