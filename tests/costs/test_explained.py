"""Entries that explain a cost: when they do, when steps add up, and when they are stale."""

from __future__ import annotations

import pytest

from replaydrift.costs.explained import explaining, is_stale, sides
from replaydrift.costs.findings import CostCheck, CostFinding
from replaydrift.costs.statistics import compare
from replaydrift.explanations import Explanation

OLD, MID, NEW = "2.13.0+cu130", "2.14.1+cu130", "2.15.0+cu132"
TIMES = (100.0, 100.3, 99.8, 100.1, 99.9, 100.2)


def entry(before: str, after: str, start: str = MID, end: str = NEW, machine: str = "h200", case: str = "chain/1000") -> Explanation:
    """An explanation of a cost of a chain."""
    return Explanation(case, machine, start, end, "cost-changed", before, after, "why", "")


def count(before: float, after: float) -> CostFinding:
    """What became of the chain's nodes."""
    return CostFinding("chain/1000", "nodes", "same" if before == after else "changed", headline=False, before=before, after=after)


def timed(factor: float, answer: str = "changed") -> CostFinding:
    """What became of the chain's replay, `factor` times as long."""
    return CostFinding("chain/1000", "replay_gpu_us", answer, headline=True, comparison=compare(TIMES, [time * factor for time in TIMES], 0.01))


def explained(finding: CostFinding, *entries: Explanation) -> int:
    """How many of the entries explain the finding, all steps lying in the range."""
    return len(explaining(finding, "h200", entries, lambda _start, _end: True))


def test_a_time_is_explained_by_its_direction() -> None:
    """Whatever the numbers, more is explained by an entry that says more, on its machine and of its subject alone."""
    more, less = entry("replay_gpu_us", "replay_gpu_us more"), entry("replay_gpu_us", "replay_gpu_us less")
    assert sides(timed(1.05)) == ("replay_gpu_us", "replay_gpu_us more")
    assert (explained(timed(1.05), more), explained(timed(1.2), more), explained(timed(0.9), more)) == (1, 1, 0)
    assert (explained(timed(0.9), less), explained(timed(1.05), less, more)) == (1, 1)
    assert explained(timed(1.05), entry("replay_gpu_us", "replay_gpu_us more", machine="b200")) == 0
    assert explained(timed(1.05), entry("replay_gpu_us", "replay_gpu_us more", case="chain/10")) == 0
    assert not explaining(timed(1.05), "h200", [more], lambda _start, _end: False)


def test_one_entry_speaks_of_many_subjects() -> None:
    """A pattern explains every subject whose metric went its way, times and counts alike, and is stale once none does."""
    many = entry("nodes", "nodes more", case="chain/*")
    assert explained(count(1000, 1001), many) == explained(count(1000, 2000), many) == 1
    assert explained(count(1000, 999), many) == explained(timed(1.05), many) == 0
    assert explained(count(1000, 1001), entry("nodes", "nodes more", case="mlp/*")) == 0
    check = CostCheck(MID, NEW, "one", (count(1000, 1001), timed(1.05)))
    assert not is_stale(many, check)
    assert is_stale(entry("nodes", "nodes less", case="chain/*"), check)
    assert is_stale(many, CostCheck(MID, NEW, "one", (count(1000, 1000),)))


def test_steps_of_a_count_add_up() -> None:
    """A count is explained from number to number; a step that begins or ends elsewhere explains nothing."""
    first, second = entry("nodes 1000", "nodes 1001", OLD, MID), entry("nodes 1001", "nodes 1005")
    assert explained(count(1000, 1005), second, first) == 2
    assert explained(count(1000, 1005), first) == explained(count(1000, 1005), second) == 0
    assert explained(count(1000, 1005), entry("nodes 1002", "nodes 1005")) == 0
    assert explained(count(1000, 1001), first) == 1


@pytest.mark.parametrize(
    ("finding", "stale"),
    [
        (timed(1.05), False),
        (timed(0.95), True),
        (timed(1.003, "same"), True),
        (timed(1.05, "cannot-tell"), False),
        (CostFinding("chain/1000", "replay_gpu_us", "missing", headline=True), False),
    ],
)
def test_a_time_that_no_longer_changes_makes_its_entry_stale(finding: CostFinding, stale: bool) -> None:
    """An entry is stale where its own step is shown to be the same, or to lead the other way; not where nobody can tell."""
    assert is_stale(entry("replay_gpu_us", "replay_gpu_us more"), CostCheck(MID, NEW, "one", (finding,))) == stale


def test_a_count_that_is_another_makes_its_entry_stale() -> None:
    """An entry for a count holds for its two numbers; a subject that nobody measured says nothing."""
    one = entry("nodes 1000", "nodes 1001")
    assert not is_stale(one, CostCheck(MID, NEW, "one", (count(1000, 1001),)))
    assert is_stale(one, CostCheck(MID, NEW, "one", (count(1000, 1002),)))
    assert is_stale(one, CostCheck(MID, NEW, "one", (count(1000, 1000),)))
    assert not is_stale(one, CostCheck(MID, NEW, "one", ()))
