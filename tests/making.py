"""Short ways to make records for tests."""

from __future__ import annotations

from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, CaseRecord, Environment, Raised, Warned
from replaydrift.strip import Cell


def attempt(text: str, *values: object, warns: tuple[str, ...] = (), cause: str = "") -> Attempt:
    """An attempt with this outcome; `values` are what it observed where 1 was right; `cause` adds a link to the chain."""
    outcome = Outcome.parse(text)
    chain = ()
    if outcome.error:
        chain = (Raised(*outcome.error),) + ((Raised(*cause.split(": ", 1)),) if cause else ())
    strip = tuple(Cell("replay", value, 1) for value in (values or ((2,) if text == "wrong" else (1,))))
    return Attempt(outcome, strip, warnings=tuple(Warned("UserWarning", text) for text in warns), chain=chain)


def record(*attempts: Attempt | str, case: str = "group/bug", kind: str = "bug", version: str = "v1", **more: object) -> CaseRecord:
    """A record of these attempts; one alone stands for three alike."""
    made = tuple(attempt(item) if isinstance(item, str) else item for item in attempts)
    return CaseRecord(case, kind, version, made * 3 if len(made) == 1 else made, **more)


def environment(
    release: str = "2.13.0+cu130",
    machine: str = "h200",
    gpu: str = "NVIDIA H200",
    engine: str = "cuda",
    **facts: object,
) -> Environment:
    """An environment with a few facts."""
    return Environment(machine, engine, release, {"gpu": {"name": gpu, "driver": "580.1"}, "torch": {"version": release}} | facts)
