"""Cost records: what they hold and their JSON form."""

from __future__ import annotations

import pytest
from synthetic_costs import NEW, OLD, block, costs, subject, visit

from replaydrift.costs.records import costs_from_json, costs_to_json, subject_from_json


def test_round_trip() -> None:
    """Samples, reasons, failures and discarded visits are read as they were written."""
    rich = costs(
        OLD,
        visit(1, "throttled: SW power cap", chain_1000=subject(replay_gpu_us=(1.5, 2.5))),
        visit(1, chain_1000=subject(replay_gpu_us=(1.5, 2.5), nodes=1000, lacks={"instantiate_ms": "keep_graph is new in 2.8"})),
        visit(4, rng_default_auto=subject(failed="RuntimeError: no")),
    )
    assert costs_from_json(costs_to_json(rich)) == rich


def test_a_block_knows_the_places_of_its_visits() -> None:
    """Places count from 1, and every visit has one."""
    made = block(OLD, NEW, NEW, OLD)
    assert made.releases == (OLD, NEW)
    assert made.numbers(OLD) == (1, 4)
    assert made.numbers(NEW) == (2, 3)


def test_one_visit_gives_one_value() -> None:
    """The process is the sample: its median counts, however many samples it took, and a discarded visit counts nothing."""
    made = costs(
        OLD,
        visit(1, "throttled", chain_10=subject(replay_gpu_us=99)),
        visit(1, chain_10=subject(replay_gpu_us=(1, 2, 30))),
        visit(4, chain_10=subject(replay_gpu_us=4), chain_1=subject(nodes=1)),
    )
    assert made.values("chain/10", "replay_gpu_us") == (2, 4)
    assert list(made.series()) == [("chain/1", "nodes", (1,)), ("chain/10", "replay_gpu_us", (2, 4))]
    assert made.missing == (5, 8, 9, 12)


@pytest.mark.parametrize("samples", [[], [float("nan")], [float("inf")], ["1"], [None], [True]])
def test_a_cost_that_is_no_number_is_no_cost(samples: list[object]) -> None:
    """Nothing but finite numbers reaches a test."""
    with pytest.raises(ValueError, match="finite numbers"):
        subject_from_json({"version": "v1", "metrics": {"replay_gpu_us": samples}})


def test_an_unknown_purpose_is_refused() -> None:
    """The purposes of blocks are a closed set."""
    tree = costs_to_json(costs())
    tree["block"]["purpose"] = "fun"
    with pytest.raises(ValueError, match="none of matrix, upgrade, aa, measure"):
        costs_from_json(tree)
