"""Cost records: what the visits of a block measured, and their JSON form. Pure data; files are the cost store's business."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, Literal

from replaydrift.records import Environment, environment_from_json, environment_to_json

# Raise it when the meaning of a stored field changes, and teach `upgrade` in cost_store.py to read the older form.
SCHEMA: Final = 1

Purpose = Literal["matrix", "upgrade", "aa", "measure"]
PURPOSES: Final = ("matrix", "upgrade", "aa", "measure")
# A visit that is discarded is made again, so often in all; then its place stays empty and the block goes on.
TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """Costs measured together. `order` names the release of every visit, first to last, as `torch.__version__` prints it.

    `suite` is a hash of what every visit measures: subjects, sizes, case versions; a stopped block goes on with the same only.
    """

    name: str
    purpose: Purpose
    order: tuple[str, ...]
    suite: str = ""

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases in the order of their first visits."""
        return tuple(dict.fromkeys(self.order))

    def numbers(self, release: str) -> tuple[int, ...]:
        """The places of a release's visits in the order, counted from 1."""
        return tuple(number for number, name in enumerate(self.order, 1) if name == release)


@dataclass(frozen=True, slots=True)
class Subject:
    """What one visit measured of a case or workload.

    `metrics` maps a metric to its samples, an exact count to one integer; `lacks` says why a metric cannot be had here;
    `failed` is the error that ended the measurement, and empty where it did not.
    """

    version: str
    metrics: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""

    def value(self, metric: str) -> float | None:
        """The visit's one value of a metric: the median of its samples; None where it has none."""
        samples = self.metrics.get(metric)
        return median(samples) if samples else None


@dataclass(frozen=True, slots=True)
class Visit:
    """One process of one release; the process is the sample. `discarded` says why it does not count, and is empty where it does."""

    number: int
    began: str
    seconds: float
    subjects: Mapping[str, Subject]
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    throttled: tuple[str, ...] = ()
    discarded: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a block holds of one release: one file of the cost store."""

    block: Block
    environment: Environment
    visits: tuple[Visit, ...] = ()

    @property
    def kept(self) -> tuple[Visit, ...]:
        """The visits that count, in the order in which they were made."""
        return tuple(visit for visit in self.visits if not visit.discarded)

    @property
    def missing(self) -> tuple[int, ...]:
        """The places of the block's order at which a visit of this release is still to be made.

        A place whose tries are used up is not among them, nor any place of a release that gave nothing at its first one.
        """
        there = {visit.number for visit in self.kept}
        tried = Counter(visit.number for visit in self.visits if visit.discarded)
        if not there and any(count >= TRIES for count in tried.values()):
            return ()
        places = self.block.numbers(self.environment.release)
        return tuple(number for number in places if number not in there and tried[number] < TRIES)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects of all visits that count, sorted."""
        return tuple(sorted({name for visit in self.kept for name in visit.subjects}))

    def of(self, subject: str) -> tuple[Subject, ...]:
        """What each visit that counts has of a subject; visits that have nothing of it are left out."""
        return tuple(visit.subjects[subject] for visit in self.kept if subject in visit.subjects)

    def values(self, subject: str, metric: str) -> tuple[float, ...]:
        """One value a visit that counts: the sample of every test between releases."""
        return tuple(value for one in self.of(subject) if (value := one.value(metric)) is not None)

    def series(self) -> Iterator[tuple[str, str, tuple[float, ...]]]:
        """Subject, metric and one value a visit, for every subject and metric that was measured, sorted."""
        for subject in self.subjects:
            for metric in sorted({name for one in self.of(subject) for name in one.metrics}):
                yield subject, metric, self.values(subject, metric)


def costs_to_json(costs: Costs) -> dict[str, Any]:
    """A JSON tree of the costs of one release in one block."""
    return {
        "schema": SCHEMA,
        "block": {"name": costs.block.name, "purpose": costs.block.purpose, "order": list(costs.block.order), "suite": costs.block.suite},
        "environment": environment_to_json(costs.environment),
        "visits": [_visit_to_json(visit) for visit in costs.visits],
    }


def costs_from_json(tree: Mapping[str, Any]) -> Costs:
    """The costs of a JSON tree; KeyError, TypeError, ValueError or AttributeError where it holds none."""
    block = tree["block"]
    if block["purpose"] not in PURPOSES:
        raise ValueError(f"purpose {block['purpose']!r} is none of {', '.join(PURPOSES)}")
    return Costs(
        block=Block(block["name"], block["purpose"], tuple(block["order"]), block.get("suite", "")),
        environment=environment_from_json(tree["environment"]),
        visits=tuple(_visit_from_json(visit) for visit in tree["visits"]),
    )


def _visit_to_json(visit: Visit) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "number": visit.number,
        "began": visit.began,
        "seconds": visit.seconds,
        "sm_clock_mhz": visit.sm_clock_mhz,
        "temperature_c": visit.temperature_c,
        "throttled": list(visit.throttled),
        "discarded": visit.discarded,
        "subjects": {name: subject_to_json(subject) for name, subject in visit.subjects.items()},
    }
    return {key: value for key, value in tree.items() if value is not None}


def _visit_from_json(tree: Mapping[str, Any]) -> Visit:
    return Visit(
        number=tree["number"],
        began=tree["began"],
        seconds=tree["seconds"],
        subjects={name: subject_from_json(subject) for name, subject in tree["subjects"].items()},
        sm_clock_mhz=tree.get("sm_clock_mhz"),
        temperature_c=tree.get("temperature_c"),
        throttled=tuple(tree.get("throttled", ())),
        discarded=tree.get("discarded", ""),
    )


def subject_to_json(subject: Subject) -> dict[str, Any]:
    """A JSON tree of a subject; empty fields are left out, `version` and `metrics` never."""
    tree: dict[str, Any] = {
        "version": subject.version,
        "metrics": {name: list(samples) for name, samples in subject.metrics.items()},
    }
    optional = {"lacks": dict(subject.lacks), "failed": subject.failed}
    return tree | {key: value for key, value in optional.items() if value}


def subject_from_json(tree: Mapping[str, Any]) -> Subject:
    """The subject of a JSON tree; KeyError, TypeError, ValueError or AttributeError where it is none."""
    return Subject(
        version=str(tree["version"]),
        metrics={name: _samples(name, samples) for name, samples in tree["metrics"].items()},
        lacks={str(name): str(why) for name, why in tree.get("lacks", {}).items()},
        failed=str(tree.get("failed", "")),
    )


def _samples(name: str, samples: list[Any]) -> tuple[float, ...]:
    """The samples themselves; ValueError where one is no finite number: a cost that is none must never reach a test."""
    wrong = [sample for sample in samples if not isinstance(sample, int | float) or isinstance(sample, bool) or not math.isfinite(sample)]
    if wrong or not samples:
        raise ValueError(f"{name}: found {wrong[:1] or samples!r}, expected a list of finite numbers")
    return tuple(samples)
