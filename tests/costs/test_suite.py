"""What a visit measures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replaydrift.catalogue import read_catalogue
from replaydrift.costs import suite
from replaydrift.costs.metrics import METRICS, MOST_HEADLINES
from replaydrift.costs.steps import StepCost
from replaydrift.errors import RunError
from replaydrift.library import read_library
from replaydrift.plan import Plan, make_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The project's own cases."""
    catalogue = read_catalogue(read_library(Path(__file__).parents[2] / "cases"))
    return make_plan(catalogue, catalogue.cases, engine="cuda", attempts=1)


def test_the_gate_is_short(plan: Plan) -> None:
    """At most 60 pairs of subject and metric decide, each metric that may has some, and every standard size is among them."""
    names = suite.names_in(suite.request(plan, engine="cuda"))
    gate = [(name, metric.name) for name in names for metric in METRICS.values() if metric.is_headline(name)]
    assert 20 < len(gate) <= MOST_HEADLINES
    assert {metric for _, metric in gate} == {metric.name for metric in METRICS.values() if metric.headline}
    assert set(suite.WORKLOADS) <= {name for name, _ in gate}
    for metric in METRICS.values():
        for pattern in metric.headline:
            assert any(metric.is_headline(name) and METRICS[metric.name] for name in names), pattern


def test_everything_is_measured_unless_patterns_say_otherwise(plan: Plan) -> None:
    """A pattern takes workloads, bucketing or cases; the names of a request are unique."""
    names = suite.names_in(suite.request(plan, engine="cuda"))
    assert len(set(names)) == len(names)
    assert {"chain/10000", "rng/default-auto", "bucketing/mlp/requests/eager", "bucketing/decoder/uniform/optimal-4"} <= set(names)
    some = suite.request(plan, engine="cuda", patterns=["chain/*", "rng/*"])
    assert {name.partition("/")[0] for name in suite.names_in(some)} == {"chain", "rng"}


def test_the_rest_is_dealt_to_visits(plan: Plan) -> None:
    """Each case, and each policy beside the gate's, is in one of six shares, about equally large; what the gate asks for is in all."""
    asked = suite.request(plan, engine="cuda", shares=6)
    shares = [suite.share(asked, number) for number in range(6)]
    cases = [[case["name"] for case in share["cases"]] for share in shares]
    assert sorted(name for hand in cases for name in hand) == sorted(case["name"] for case in asked["cases"])
    assert max(map(len, cases)) < 1.5 * min(map(len, cases))
    groups = [{name.partition("/")[0] for name in hand} for hand in cases]
    assert sum(map(len, groups)) == len(set().union(*groups))
    assert all(share["workloads"] == asked["workloads"] for share in shares)
    policies = Counter(name for share in shares for name in suite.names_in(share) if name.startswith("bucketing/") and name.count("/") == 3)
    gate = {name for name in policies if any(metric.is_headline(name) for metric in METRICS.values())}
    assert len(policies) == len(asked["bucketing"])
    assert {name: count for name, count in policies.items() if count > 1} == dict.fromkeys(gate, 6)
    assert len({len(share["bucketing"]) for share in shares}) <= 2
    assert suite.share(asked, 7) == shares[1]


def test_the_model_counts_on_one_network(plan: Plan) -> None:
    """Without patterns the CPU model is spared the decoder's traces; a pattern gets them."""
    names = suite.names_in(suite.request(plan, engine="model"))
    assert "bucketing/mlp/requests/eager" in names
    assert not [name for name in names if name.startswith("bucketing/decoder/")]
    assert suite.names_in(suite.request(plan, engine="model", patterns=["bucketing/decoder/requests/*"]))


def test_without_shares_a_visit_measures_everything(plan: Plan) -> None:
    """Where a few subjects are chosen nothing is dealt."""
    asked = suite.request(plan, engine="cuda", patterns=["rng/*"])
    assert suite.share(asked, 3) == asked


def test_buckets_are_written_out(plan: Plan) -> None:
    """The measuring side gets lists of sizes: it knows nothing of policies."""
    asked = suite.request(plan, engine="cuda", patterns=["bucketing/decoder/requests/*"])
    buckets = {one["policy"]: one["buckets"] for one in asked["bucketing"]}
    assert buckets["eager"] is None
    assert buckets["pad-to-max"] == [max(asked["bucketing"][0]["trace"])]
    assert len(buckets["optimal-4"]) == 4


def test_optimal_buckets_follow_what_a_step_costs(plan: Plan) -> None:
    """Where a step of a model costs the same at every length, one bucket does for its optimal policies, and for no other's."""
    flat = suite.request(plan, engine="cuda", patterns=["bucketing/*/uniform/*"], curves={"mlp": StepCost.linear(50, 0)})
    buckets = {(one["model"], one["policy"]): one["buckets"] for one in flat["bucketing"]}
    longest = max(flat["bucketing"][0]["trace"])
    assert buckets["mlp", "optimal-4"] == [longest]
    assert len(buckets["decoder", "optimal-4"]) == len(buckets["mlp", "even-4"]) == 4


def test_the_hash_is_of_what_is_measured(plan: Plan) -> None:
    """Where files lie and how long a visit may take change nothing; a case's code, a size or a planted slow-down does."""
    asked = suite.request(plan, engine="cuda", patterns=["chain/10", "rng/*"])
    moved = {**asked, "seconds": 3.0, "cases": [{**case, "path": "/elsewhere"} for case in asked["cases"]]}
    edited = {**asked, "cases": [{**case, "version": "other"} for case in asked["cases"]]}
    planted = suite.request(plan, engine="cuda", patterns=["chain/10", "rng/*"], plant={"chain/10": {"gpu": 1.05}})
    assert suite.hash_of(moved) == suite.hash_of(asked)
    assert len({suite.hash_of(one) for one in (asked, edited, planted)}) == 3


def test_a_pattern_that_matches_nothing_is_an_error(plan: Plan) -> None:
    """The nearest names are told."""
    with pytest.raises(RunError, match="did you mean 'decoder/128'"):
        suite.request(plan, engine="cuda", patterns=["decoder/12"])
