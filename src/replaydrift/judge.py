"""Judging: two raw reports, of a case and of its reference, become one attempt. Pure; nothing is run or read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, Raised, Warned
from replaydrift.strip import STEPS, Yielded, is_correct, pair
from replaydrift.values import Value

# What the server reports of one process; `child/running.py` makes it. `how` is one of the kinds below.
Report: TypeAlias = Mapping[str, Any]
HOWS: Final = ("finished", "raised", "skipped", "crashed", "timed-out", "broken")

ADDRESS: Final = "address"
_LONGEST_DETAIL: Final = 400


def judge(case: Report, reference: Report, tolerance: float = 0.0) -> Attempt:
    """The attempt that the case's report amounts to beside its reference's. What the case itself came to comes first: a case
    that raises raised, whatever its reference did.
    """
    seen, right = _yielded(case), _yielded(reference)
    strip = pair(seen, right if reference["how"] == "finished" else (), whole=case["how"] == "finished")
    return Attempt(
        outcome=_outcome(case, reference, correct=is_correct(strip, tolerance), paired=any(step in STEPS for step, _ in seen)),
        strip=strip,
        evidence=relative_addresses([(step, value) for step, value in seen if step not in STEPS]),
        warnings=tuple(Warned(warning["category"], warning["text"], warning["count"]) for warning in case["warnings"]),
        chain=tuple(Raised(link["class"], link["text"], link["where"]) for link in case["chain"]),
        stdout=case["stdout"],
        stderr=case["stderr"],
        duration_ms=case["duration_ms"],
        capture_ms=case["capture_ms"],
        rules=tuple(case["rules"]),
    )


def _outcome(case: Report, reference: Report, *, correct: bool, paired: bool) -> Outcome:
    if case["how"] not in HOWS:
        raise ValueError(f"a report that ended {case['how']!r}: expected one of {', '.join(HOWS)}")
    if case["how"] != "finished":
        return _own(case)
    if not paired:
        return Outcome("broken", f"the case yielded nothing to compare: expected a step named {', '.join(STEPS[:-1])} or {STEPS[-1]}")
    if reference["how"] == "skipped":
        return Outcome("skipped", f"its reference was skipped: {_line(reference['detail'])}")
    if reference["how"] != "finished":
        return Outcome("broken", f"its reference did not finish: {_own(reference).text}")
    return Outcome("correct" if correct else "wrong")


def _own(report: Report) -> Outcome:
    """The outcome of a process that did not finish: what it raised, or how it was ended."""
    if report["how"] == "raised":
        first = report["chain"][0]
        return Outcome.raised(first["class"], _line(first["text"]))
    return Outcome(report["how"], _line(report["detail"]) or "(no reason given)")


def _line(text: str | None) -> str:
    """The first line of a text, cut where it is very long: the whole of it is in the record's chain."""
    lines = (text or "").strip().splitlines()
    first = lines[0].strip() if lines else ""
    return first if len(first) <= _LONGEST_DETAIL else first[:_LONGEST_DETAIL] + "…"


def _yielded(report: Report) -> list[Yielded]:
    return [(step, value) for step, value in report["values"]]


def relative_addresses(evidence: Sequence[Yielded]) -> tuple[Yielded, ...]:
    """The evidence with every integer of an `address` as `+0x200`, counted from the lowest address of the attempt.

    Absolute addresses differ from run to run, their distances do not. A null pointer stays `0x0` and is not the lowest.
    """
    lowest = min((number for step, value in evidence if step == ADDRESS for number in _integers(value) if number), default=0)
    return tuple((step, _relative(value, lowest) if step == ADDRESS else value) for step, value in evidence)


def _integers(value: Value) -> list[int]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in items for number in _integers(item)]


def _relative(value: Value, lowest: int) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"+0x{value - lowest:x}" if value else "0x0"
    if isinstance(value, list):
        return [_relative(item, lowest) for item in value]
    if isinstance(value, dict):
        return {key: _relative(item, lowest) for key, item in value.items()}
    return value
