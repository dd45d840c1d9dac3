"""What a visit measures: workloads of standard sizes, bucket policies over standard traces, and the cases. Pure.

Every visit of a block measures the same workloads and the policies that the gate looks at, and its share of the rest. A hash of the
whole keeps a stopped block from going on with another one.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from replaydrift.costs.lengths import TRACES, trace
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.policies import EAGER, MEASURED, buckets_of
from replaydrift.costs.steps import StepCost
from replaydrift.errors import RunError
from replaydrift.plan import Plan

WORKLOADS: Final = (*(f"chain/{size}" for size in (1, 10, 100, 1000, 10000)), "mlp/256", "decoder/128")
MODELS: Final = ("decoder", "mlp")
# What the CPU model counts (graphs, padding, memory) is much the same on both, and a decoder takes it half a minute.
COUNTED: Final = ("mlp",)

# One process measures its share of the suite in at most so long. What the gate does not look at is dealt to so many visits.
SECONDS: Final = 40.0
SHARES: Final = 6


def request(
    plan: Plan, *, engine: str, patterns: Iterable[str] = (), seconds: float = SECONDS, plant: Mapping[str, Mapping[str, float]] | None = None,
    curves: Mapping[str, StepCost] | None = None, shares: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """The request of a visit: everything, or the subjects that match a pattern, such as `chain/*`, `bucketing/decoder/*`, `rng/*`.

    Into so many `shares` the rest will be dealt; `share` gives the request of one visit. The CPU model gets both models' policies only
    where a pattern asks for them.
    `curves` has what a step of a model costs at each length, for the optimal policies; without it they save padded elements.
    RunError names a pattern that matches nothing, and a planted slow-down of what is not measured.
    """
    cases = {
        entry.case.name: {
            "name": entry.case.name,
            "path": entry.task.path,
            "function": entry.task.function,
            "version": entry.case.version,
            "options": dict(entry.task.options),
            "scale": entry.task.scale,
        }
        for entry in plan.cases
    }
    bucketing = _bucketings(curves or {}, MODELS if patterns or engine != "model" else COUNTED)
    wanted = _chosen([*WORKLOADS, *bucketing, *cases], tuple(patterns))
    for name in plant or {}:
        if name not in wanted:
            raise RunError(f"cannot slow down {name!r}: expected a subject that is measured, such as 'chain/1000'")
    return {
        "engine": engine,
        "workloads": [name for name in WORKLOADS if name in wanted],
        "bucketing": [made for name, made in bucketing.items() if name in wanted],
        "cases": [made for name, made in cases.items() if name in wanted],
        "plant": {name: dict(factors) for name, factors in (plant or {}).items()},
        "seconds": seconds,
        "shares": shares,
    }


def share(asked: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The request of the visit of this number (from 0) to a release: all that the gate looks at, and its share of the rest.

    There is too much else for the time of a visit, and none of it is a headline. The cases of a file, which are measured in one
    process, stay together; shares are about equally large, and the same for every release.
    """
    files: dict[str, list[Any]] = {}
    for case in asked["cases"]:
        files.setdefault(case["path"], []).append(case)
    hands: list[list[Any]] = [[] for _ in range(asked["shares"])]
    for _, cases in sorted(files.items(), key=lambda item: (-len(item[1]), item[0])):
        min(hands, key=len).extend(cases)
    dealt = [_name(one) for one in asked["bucketing"] if not _gates(one)][number % len(hands) :: len(hands)]
    return {
        **asked,
        "bucketing": [one for one in asked["bucketing"] if _gates(one) or _name(one) in dealt],
        "cases": hands[number % len(hands)],
    }


def names_in(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of all subjects of a request."""
    return (*asked["workloads"], *map(_name, asked["bucketing"]), *(case["name"] for case in asked["cases"]))


def _name(bucketing: Mapping[str, Any]) -> str:
    return f"bucketing/{bucketing['model']}/{bucketing['name']}/{bucketing['policy']}"


def _gates(bucketing: Mapping[str, Any]) -> bool:
    """True for a policy over a trace that the gate looks at."""
    return any(metric.is_headline(_name(bucketing)) for metric in METRICS.values())


def hash_of(asked: Mapping[str, Any]) -> str:
    """Twelve hex digits over what is measured: where the files lie, and how long it may take, change nothing."""
    cases = [{key: value for key, value in case.items() if key != "path"} for case in asked["cases"]]
    kept = {key: value for key, value in asked.items() if key != "seconds"} | {"cases": cases}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def _bucketings(curves: Mapping[str, StepCost], models: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Every policy over every trace on these models, by the name of its subject; `eager` has no buckets."""
    found = {}
    for model in models:
        for name in TRACES:
            lengths = trace(name)
            for policy in MEASURED:
                found[f"bucketing/{model}/{name}/{policy}"] = {
                    "model": model,
                    "trace": list(lengths),
                    "name": name,
                    "policy": policy,
                    "buckets": None if policy == EAGER else list(buckets_of(policy, lengths, curves.get(model))),
                    "shared_pool": True,
                }
    return found


def _chosen(names: Sequence[str], patterns: Sequence[str]) -> set[str]:
    chosen: set[str] = set()
    for pattern in patterns:
        hits = {name for name in names if fnmatchcase(name, pattern)}
        if not hits:
            near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "subjects are workloads, bucketing and cases"
            raise RunError(f"no subject matches {pattern!r}: {hint}")
        chosen |= hits
    return chosen if patterns else set(names)
