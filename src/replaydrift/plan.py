"""What a sweep has to run: the tasks of the chosen cases and of their references, in the order in which attempts begin. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replaydrift.catalogue import CaseNotes, Catalogue
from replaydrift.errors import RunError
from replaydrift.library import Case
from replaydrift.values import Value


@dataclass(frozen=True)
class Task:
    """One function to run, once an attempt number. A case's name, or a reference's with the sizes it shares with its case.

    `overlaps` is true where its outcome may depend on what the GPU does at the same time.
    """

    name: str
    path: str
    function: str
    options: Mapping[str, Value]
    scale: float
    limit_s: float
    alone: bool
    overlaps: bool = True


@dataclass(frozen=True)
class Planned:
    """A case with its notes, its own task and its reference's."""

    case: Case
    notes: CaseNotes
    task: Task
    reference: Task

    @property
    def options(self) -> Mapping[str, Value]:
        """The sizes that were passed to it."""
        return self.task.options


@dataclass(frozen=True)
class Plan:
    """The cases of a sweep and how often each runs."""

    cases: tuple[Planned, ...]
    attempts: int
    tasks: tuple[Task, ...] = field(default=())

    @property
    def order(self) -> list[tuple[Task, int]]:
        """Every (task, attempt number) in the order of beginning: round after round, what runs alone at the end of its round.

        Attempts of one case lie apart in time, so that what drifts on the machine does not look like the case.
        """
        rounds = [task for task in self.tasks if not task.alone] + [task for task in self.tasks if task.alone]
        return [(task, attempt) for attempt in range(1, self.attempts + 1) for task in rounds]


def make_plan(
    catalogue: Catalogue,
    cases: Iterable[Case],
    *,
    engine: str,
    attempts: int,
    sizes: Mapping[str, int] | None = None,
    limit_s: float | None = None,
) -> Plan:
    """The plan for these cases. RunError where a size is asked for that no chosen case takes."""
    chosen = [case for case in catalogue.cases if case.name in {case.name for case in cases}]
    wanted = dict(sizes or {})
    _check_sizes(wanted, chosen)
    planned = []
    tasks: dict[str, Task] = {}
    for case in chosen:
        notes = catalogue.notes[case.name]
        on_model = engine == "model"
        options: dict[str, Value] = dict(notes.model.options) if on_model else {}
        options |= {name: size for name, size in wanted.items() if name in case.options}
        task = Task(
            name=case.name,
            path=str(case.path.resolve()),
            function=case.function,
            options=options,
            scale=notes.model.scale if on_model else 1.0,
            limit_s=limit_s if limit_s is not None else notes.limit_s,
            alone=notes.alone and not on_model,  # The model's clock is its own: nothing disturbs it.
            overlaps=notes.alone or notes.overlaps or notes.model.timing,
        )
        reference = _reference(case, task, tasks)
        tasks[reference.name] = reference
        tasks[task.name] = task
        planned.append(Planned(case, notes, task, reference))
    return Plan(tuple(planned), attempts, _references_first(planned, tasks))


def _reference(case: Case, task: Task, known: Mapping[str, Task]) -> Task:
    """The task of the case's reference: with the case's sizes and scale, alone where the case is."""
    name = f"{case.group}/{case.reference.replace('_', '-')}"
    if task.options or task.scale != 1.0:
        name += " " + json.dumps({"scale": task.scale, **task.options}, sort_keys=True)
    earlier = known.get(name)
    return Task(
        name=name,
        path=task.path,
        function=case.reference,
        options=task.options,
        scale=task.scale,
        limit_s=max(task.limit_s, earlier.limit_s if earlier else 0.0),
        alone=task.alone or bool(earlier and earlier.alone),
        overlaps=task.overlaps or bool(earlier and earlier.overlaps),
    )


def _references_first(planned: Sequence[Planned], tasks: Mapping[str, Task]) -> tuple[Task, ...]:
    """Each task once, a reference just before the first of its cases, so that a case can be judged when it ends."""
    ordered: dict[str, Task] = {}
    for entry in planned:
        ordered[entry.reference.name] = tasks[entry.reference.name]
        ordered[entry.task.name] = entry.task
    return tuple(ordered.values())


def _check_sizes(sizes: Mapping[str, int], cases: Sequence[Case]) -> None:
    known = sorted({name for case in cases for name in case.options})
    for name in sizes:
        if name not in known:
            raise RunError(f"no chosen case takes a size {name!r}: sizes they take are {', '.join(known) or 'none'}")


def header_of(plan: Plan, *, release: str, engine: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for a stopped sweep to go on: release, engine, environment, and each case's version and sizes."""
    return {
        "release": release,
        "engine": engine,
        "facts": dict(facts),
        "attempts": plan.attempts,
        "cases": {
            entry.case.name: {
                "version": entry.case.version,
                "options": dict(entry.task.options),
                "scale": entry.task.scale,
                "limit_s": entry.task.limit_s,
            }
            for entry in plan.cases
        },
    }
