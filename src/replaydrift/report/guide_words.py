"""What an upgrade guide shows as evidence: both sides of a case, warnings that came or went, how far a cost moved. All shortened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from replaydrift.check import Finding
from replaydrift.costs.findings import CostFinding
from replaydrift.costs.metrics import METRICS
from replaydrift.outcome import same_text
from replaydrift.records import Attempt, CaseRecord
from replaydrift.report.cost_words import quantity
from replaydrift.report.escape import escape
from replaydrift.strip import Missing
from replaydrift.values import show
from replaydrift.verdicts import settled, summarise

_LONGEST: Final = 150
_PULL: Final = re.compile(r"https://github\.com/[^/]+/[^/]+/pull/(\d+)$")
_MIB: Final = 2**20


def prose(text: str) -> str:
    """A person's sentences as Markdown: what stands between backticks stays code, the rest cannot start markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"`{' '.join(part.split())}`" if odd % 2 else _escaped(part) for odd, part in enumerate(parts))


def linked(why: str, link: str) -> str:
    """The cause, and where to read more: a pull request by its number."""
    if not link:
        return prose(why)
    pull = _PULL.match(link)
    return f"{prose(why)} ([{'pull request ' + pull[1] if pull else 'source'}]({link}))"


def code(text: str, longest: int = _LONGEST) -> str:
    """Hostile text as a code span: on one line, without what would end the span, and not longer than a reader reads."""
    plain = " ".join(text.replace("`", "'").split())
    return f"`{plain if len(plain) <= longest else plain[: longest - 2].rstrip() + ' …'}`"


def side(record: CaseRecord | None) -> str:
    """What a case did on one release: its outcome, with values where it showed some, or both rates where attempts disagree."""
    if record is None or not record.attempts:
        return "not run"
    summary = summarise(record)
    if not summary.unanimous:
        return escape(summary.rates)
    attempt = settled(record.attempts)[0]
    outcome = attempt.outcome
    if outcome.kind == "wrong":
        right = ", ".join("–" if isinstance(cell.correct, Missing) else show(cell.correct) for cell in attempt.strip)
        return f"**wrong** {code(attempt.observed)}, right is {code(right)}"
    if outcome.kind == "raised":
        return "raises " + " from ".join(code(same_text(f"{name}: {text}")) for name, text in attempt.errors or [outcome.error or ("", "")])
    if outcome.kind == "correct":
        return f"correct {code(attempt.observed)}" if attempt.strip else "correct"
    return escape(f"{outcome.kind}: {outcome.detail}" if outcome.detail else outcome.kind)


def warnings(findings: Iterable[Finding]) -> list[str]:
    """The distinct warnings that went and came over these cases, each once."""
    gone: set[tuple[str, str]] = set()
    come: set[tuple[str, str]] = set()
    for finding in findings:
        before, after = _warned(finding.change.old), _warned(finding.change.new)
        gone |= before - after
        come |= after - before
    told = [f"Gone: {code(f'{category}: {text}')}" for category, text in sorted(gone)]
    return told + [f"New: {code(f'{category}: {text}')}" for category, text in sorted(come)]


def moved(findings: Sequence[CostFinding]) -> list[str]:
    """A line for each metric: what it is, how many subjects moved, the one that moved least and the one that moved most."""
    lines = []
    for metric in dict.fromkeys(finding.metric for finding in findings):
        own = sorted((finding for finding in findings if finding.metric == metric), key=_ratio)
        ends = {f"{_amount(end.before, metric)} → {_amount(end.after, metric)}": end.subject for end in (own[-1], own[0])}
        shown = " to ".join(f"{amounts} ({code(subject)})" for amounts, subject in reversed(ends.items()))
        many = f", {len(own)} subjects" if len(own) > 1 else ""
        lines.append(f"{code(metric)} ({escape(METRICS[metric].meaning)}){many}: {shown}")
    return lines


def _escaped(text: str) -> str:
    """As `escape`, but the spaces at the ends stay: a code span is their neighbour."""
    head, tail = " " * text[:1].isspace(), " " * text[-1:].isspace()
    return f"{head}{escape(text)}{tail}" if text.strip() else head


def _warned(record: CaseRecord | None) -> frozenset[tuple[str, str]]:
    attempts: Sequence[Attempt] = settled(record.attempts) if record else ()
    return attempts[0].warned if attempts else frozenset()


def _ratio(finding: CostFinding) -> float:
    return (finding.after or 0.0) / (finding.before or 1.0)


def _amount(value: float | None, metric: str) -> str:
    """The number with its unit; bytes as MiB, which people count pools in."""
    if value is None:
        return "none"
    if metric.endswith("_bytes") and value >= _MIB:
        return f"{value / _MIB:,.0f} MiB" if value % _MIB == 0 else f"{value / _MIB:,.1f} MiB"
    return quantity(value, metric)
