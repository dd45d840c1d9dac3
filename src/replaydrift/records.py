"""Records: what is kept of each attempt, and their JSON form. Pure data; files are the store's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from replaydrift.outcome import Outcome, same_text
from replaydrift.strip import MISSING, Cell, Missing, Strip
from replaydrift.values import Value, show

# Raise it when the meaning of a stored field changes, and teach `upgrade` in store.py to read the older form.
SCHEMA = 1

KINDS: Final = ("bug", "fix", "behaviour")


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning as the process gave it: category ('stderr' for those of C++ that Python never sees), text, how often."""

    category: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Raised:
    """One link of an exception chain: class, whole text, and the place in the case's file where there is one."""

    class_name: str
    text: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one case in a process of its own. Times in milliseconds; `chain` has what a user sees first, causes after it."""

    outcome: Outcome
    strip: Strip = ()
    evidence: tuple[tuple[str, Value], ...] = ()
    warnings: tuple[Warned, ...] = ()
    chain: tuple[Raised, ...] = ()
    stdout: str = ""
    stderr: str = ""
    duration_ms: float | None = None
    capture_ms: float | None = None
    rules: tuple[str, ...] = ()

    @property
    def observed(self) -> str:
        """The observed side of the strip as one line, for a table: `2, 0, 2, 0, 0`."""
        return ", ".join("–" if isinstance(cell.observed, Missing) else show(cell.observed) for cell in self.strip)

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """Class and comparable text of every link of the chain."""
        return tuple((link.class_name, same_text(link.text.strip().splitlines()[0] if link.text.strip() else "")) for link in self.chain)

    @property
    def warned(self) -> frozenset[tuple[str, str]]:
        """Category and comparable text of each distinct warning."""
        return frozenset((warning.category, same_text(warning.text)) for warning in self.warnings)


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """All attempts of one case on one release; `version` is the hash of the case's own code, `options` the sizes it ran with."""

    case: str
    kind: str
    version: str
    attempts: tuple[Attempt, ...]
    tolerance: float = 0.0
    options: Mapping[str, Value] = field(default_factory=dict)
    timing: bool = False


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the attempts of one release ran: what `_environment.json` holds. `facts` is the tree that the child gathered."""

    machine: str
    engine: str
    release: str
    facts: Mapping[str, Any]
    note: str = ""
    recorded: str = ""

    @property
    def gpu(self) -> str:
        """The GPU's name, or the model's."""
        return str(self.facts.get("gpu", {}).get("name", "unknown"))

    @property
    def place(self) -> tuple[str, str]:
        """Engine and GPU: what all results of one machine must share."""
        return self.engine, self.gpu


def attempt_to_json(attempt: Attempt) -> dict[str, Any]:
    """A JSON tree of the attempt; empty fields are left out, so that a record shows only what happened."""
    tree: dict[str, Any] = {
        "outcome": attempt.outcome.text,
        "strip": [_cell_to_json(cell) for cell in attempt.strip],
        "evidence": [[step, value] for step, value in attempt.evidence],
        "warnings": [{"category": w.category, "count": w.count, "text": w.text} for w in attempt.warnings],
        "chain": [{"class": r.class_name, "text": r.text, "where": r.where} for r in attempt.chain],
        "stdout": attempt.stdout,
        "stderr": attempt.stderr,
        "duration_ms": attempt.duration_ms,
        "capture_ms": attempt.capture_ms,
        "rules": list(attempt.rules),
    }
    return {key: value for key, value in tree.items() if value not in ([], "", None)}


def attempt_from_json(tree: Mapping[str, Any]) -> Attempt:
    """The attempt of a JSON tree; KeyError, TypeError or ValueError where it is none."""
    return Attempt(
        outcome=Outcome.parse(tree["outcome"]),
        strip=tuple(_cell_from_json(cell) for cell in tree.get("strip", [])),
        evidence=tuple((step, value) for step, value in tree.get("evidence", [])),
        warnings=tuple(Warned(w["category"], w["text"], w["count"]) for w in tree.get("warnings", [])),
        chain=tuple(Raised(r["class"], r["text"], r.get("where")) for r in tree.get("chain", [])),
        stdout=tree.get("stdout", ""),
        stderr=tree.get("stderr", ""),
        duration_ms=tree.get("duration_ms"),
        capture_ms=tree.get("capture_ms"),
        rules=tuple(tree.get("rules", [])),
    )


def case_to_json(record: CaseRecord) -> dict[str, Any]:
    """A JSON tree of the case's record, without its name: the group's file is keyed by that."""
    tree: dict[str, Any] = {
        "kind": record.kind,
        "version": record.version,
        "options": dict(record.options),
        "tolerance": record.tolerance or None,
        "timing": record.timing or None,
        "attempts": [attempt_to_json(attempt) for attempt in record.attempts],
    }
    return {key: value for key, value in tree.items() if value not in ({}, None)}


def case_from_json(case: str, tree: Mapping[str, Any]) -> CaseRecord:
    """The record of `case` from its JSON tree; KeyError, TypeError or ValueError where it is none."""
    if tree["kind"] not in KINDS:
        raise ValueError(f"unknown kind {tree['kind']!r}: expected one of {', '.join(KINDS)}")
    return CaseRecord(
        case=case,
        kind=tree["kind"],
        version=tree["version"],
        attempts=tuple(attempt_from_json(attempt) for attempt in tree["attempts"]),
        tolerance=tree.get("tolerance", 0.0),
        options=tree.get("options", {}),
        timing=tree.get("timing", False),
    )


def environment_to_json(environment: Environment) -> dict[str, Any]:
    """A JSON tree of the environment."""
    return {
        "machine": environment.machine,
        "engine": environment.engine,
        "release": environment.release,
        "facts": dict(environment.facts),
        "note": environment.note,
        "recorded": environment.recorded,
    }


def environment_from_json(tree: Mapping[str, Any]) -> Environment:
    """The environment of a JSON tree; KeyError or TypeError where it is none."""
    if not isinstance(tree["facts"], dict) or not isinstance(tree["facts"].get("gpu", {}), dict):
        raise TypeError("'facts' and its 'gpu' are no objects")
    return Environment(
        machine=tree["machine"],
        engine=tree["engine"],
        release=tree["release"],
        facts=tree["facts"],
        note=tree.get("note", ""),
        recorded=tree.get("recorded", ""),
    )


def _cell_to_json(cell: Cell) -> dict[str, Any]:
    tree: dict[str, Any] = {"step": cell.step}
    if not isinstance(cell.observed, Missing):
        tree["observed"] = cell.observed
    if not isinstance(cell.correct, Missing):
        tree["correct"] = cell.correct
    return tree


def _cell_from_json(tree: Mapping[str, Any]) -> Cell:
    return Cell(tree["step"], tree.get("observed", MISSING), tree.get("correct", MISSING))
