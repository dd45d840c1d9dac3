"""Agreement: how far the CPU model's records and a GPU's say the same, per case and release. Measured, never assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from replaydrift import releases
from replaydrift.records import Attempt, CaseRecord
from replaydrift.store import Sweep
from replaydrift.strip import Missing
from replaydrift.values import Value, equal, show
from replaydrift.verdicts import settled, summarise

# The model computes with CPU kernels: floats agree to this, integers exactly.
FLOAT_TOLERANCE: Final = 1e-3
ASPECTS: Final = ("outcome", "strip", "error", "addresses")


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """One case on one release: for each aspect True, False, or None where the aspect does not arise; and what differs."""

    case: str
    release: str
    machine: str
    aspects: Mapping[str, bool | None]
    rules: tuple[str, ...]
    why: str

    @property
    def agrees(self) -> bool:
        """True where no aspect differs."""
        return all(value is not False for value in self.aspects.values())


def agreement_of(stored: Iterable[Sweep]) -> tuple[CaseAgreement, ...]:
    """The agreement of each case that both the model and a GPU ran on one version of torch, GPUs and releases in order.

    A model's CPU wheel stands for the version's default wheel. Cases of other case versions are left out; so are those that
    either side skipped. An empty result means that nothing stored can be compared.

    Where a case ran with other sizes on the model, of its addresses only which coincide is compared.
    """
    sweeps = list(stored)
    modelled = {_version(sweep.environment.release): sweep for sweep in sweeps if sweep.environment.engine == "model"}
    found = []
    for sweep in sweeps:
        model = modelled.get(_version(sweep.environment.release))
        if sweep.environment.engine != "cuda" or model is None:
            continue
        for name in sorted(sweep.cases.keys() & model.cases.keys()):
            agreed = _compare(sweep.cases[name], model.cases[name], sweep.environment.release, sweep.environment.machine)
            if agreed is not None:
                found.append(agreed)
    return tuple(found)


def _compare(gpu: CaseRecord, model: CaseRecord, release: str, machine: str) -> CaseAgreement | None:
    """The agreement of two records of one case; None where they cannot be held side by side."""
    theirs, ours = settled(gpu.attempts), settled(model.attempts)
    if gpu.version != model.version or not theirs or not ours or "skipped" in (theirs[0].outcome.kind, ours[0].outcome.kind):
        return None
    real, modelled = theirs[0], ours[0]
    kinds = {attempt.outcome.kind for attempt in theirs}
    where = _layout if dict(gpu.options) == dict(model.options) else _coinciding
    aspects: dict[str, bool | None] = {
        "outcome": {attempt.outcome.kind for attempt in ours} == kinds,
        "strip": _same_strips(theirs, modelled, gpu),
        "error": None if not (real.chain or modelled.chain) else [e[0] for e in real.errors] == [e[0] for e in modelled.errors],
        "addresses": None if not (_layout(real) or _layout(modelled)) else where(real) == where(modelled),
    }
    why = "; ".join(f"{name}: {_said(gpu, name)} | model {_said(model, name)}" for name, value in aspects.items() if value is False)
    rules = tuple(sorted({rule for attempt in ours for rule in attempt.rules}))
    return CaseAgreement(gpu.case, release, machine, aspects, rules, why)


def _same_strips(theirs: tuple[Attempt, ...], modelled: Attempt, gpu: CaseRecord) -> bool | None:
    """Whether the observed sides agree; None where there is nothing to see or the GPU's own attempts differ (luck, timing)."""
    if not theirs[0].strip or len({repr(attempt.strip) for attempt in theirs}) > 1 or gpu.timing:
        return None
    return len(theirs[0].strip) == len(modelled.strip) and all(
        _equal(left.observed, right.observed) for left, right in zip(theirs[0].strip, modelled.strip, strict=True)
    )


def _equal(left: Value | Missing, right: Value | Missing) -> bool:
    if isinstance(left, Missing) or isinstance(right, Missing):
        return left is right
    return equal(left, right, FLOAT_TOLERANCE)


def _layout(attempt: Attempt) -> list[object]:
    """The addresses of an attempt, relative to the lowest as they are stored."""
    return [value for step, value in attempt.evidence if step == "address"]


def _coinciding(attempt: Attempt) -> list[object]:
    """Of each look at addresses, which names share one."""
    found: list[object] = []
    for value in _layout(attempt):
        names: dict[object, set[object]] = {}
        for name, address in value.items() if isinstance(value, Mapping) else ():
            names.setdefault(address, set()).add(name)
        found.append(sorted(sorted(map(str, group)) for group in names.values()))
    return found


def _said(record: CaseRecord, aspect: str) -> str:
    """What the record shows of the aspect; outcomes with their rates where attempts differ."""
    if aspect == "outcome":
        summary = summarise(record)
        return summary.counts[0][0] if summary.unanimous else summary.rates
    attempt = settled(record.attempts)[0]
    if aspect == "strip":
        return attempt.observed
    if aspect == "error":
        return " ← ".join(name for name, _ in attempt.errors) or "none"
    return ", ".join(show(value, 80) for step, value in attempt.evidence if step == "address")


def _version(name: str) -> str:
    return releases.Release.parse(name).version
