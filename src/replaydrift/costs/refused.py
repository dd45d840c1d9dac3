"""Cases of which a sweep has shown that they end early: each would take a process of its own to fail once more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from replaydrift.costs.records import Subject
from replaydrift.records import CaseRecord, Environment
from replaydrift.store import Store

_ENDED_EARLY: Final = {"raised", "skipped"}


def refused(store: Store, environment: Environment, cases: Iterable[Mapping[str, Any]]) -> dict[str, Subject]:
    """By name, what stands in the place of these cases' costs where the store says that all attempts on this machine and release raised
    or were skipped. `cases` are those of a request. A record of another version of a case, or with other sizes, says nothing of it, and
    none does that was made on another GPU or with other libraries: a case may be skipped for the lack of one.
    """
    if environment.release not in store.releases(environment.machine):
        return {}
    sweep = store.read(environment.machine, environment.release)
    if _are_elsewhere(sweep.environment, environment):
        return {}
    known = sweep.cases
    found = {}
    for case in cases:
        record = known.get(case["name"])
        if record is not None and record.version == case["version"] and dict(record.options) == case["options"] and _always_ends_early(record):
            found[case["name"]] = Subject(record.version, failed=record.attempts[0].outcome.detail or "")
    return found


def _are_elsewhere(one: Environment, other: Environment) -> bool:
    """True where a fact that both have differs, but for variables, of which a sweep sets some for single attempts."""
    return any(one.facts[name] != other.facts[name] for name in (one.facts.keys() & other.facts.keys()) - {"variables"})


def _always_ends_early(record: CaseRecord) -> bool:
    return bool(record.attempts) and all(attempt.outcome.kind in _ENDED_EARLY for attempt in record.attempts)
