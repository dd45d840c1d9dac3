"""A sweep: run the chosen cases on one release, keep every attempt in a journal, and put the records into the store at the end.

start a server → see what it really runs → plan → journal → run → judge → store.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from replaydrift import crew
from replaydrift.catalogue import Catalogue
from replaydrift.child.attempt import QUEUES
from replaydrift.errors import RunError, StoreError
from replaydrift.journal import Journal, Reports
from replaydrift.judge import judge
from replaydrift.launch import Prepared, Server
from replaydrift.library import Case
from replaydrift.plan import Plan, Planned, header_of, make_plan
from replaydrift.records import Attempt, CaseRecord, Environment
from replaydrift.stopping import Stop, Stopped
from replaydrift.store import Store, checked_machine

_LEAST_FREE_BYTES: Final = 32 * 2**20
_BYTES_AN_ATTEMPT: Final = 16 * 2**10
_LEAST_MEMORY_BYTES: Final = 2 * 2**30
_FEWER_QUEUES: Final = "1, and the driver's own number where the outcome may depend on what overlaps"


@dataclass(frozen=True)
class Wishes:
    """What a person asked for. `release` is what must be imported; None takes whatever the interpreter has."""

    python: str
    release: str | None = None
    engine: str = "auto"
    attempts: int = 3
    jobs: int | None = None
    machine: str | None = None
    note: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    limit_s: float | None = None
    memory_bytes: int | None = None
    resume: bool = False
    fresh: bool = False


class Watcher(Protocol):
    """Who is told what happens."""

    def doing(self, what: str) -> None:
        """Something that takes a moment has begun."""

    def begun(self, environment: Environment, done: int, total: int) -> None:
        """Attempts begin: `done` of `total` are in the journal already."""

    def attempted(self, done: int) -> None:
        """So many attempts have ended now."""

    def judged(self, planned: Planned, number: int, attempt: Attempt) -> None:
        """An attempt of a case has its outcome."""


@dataclass(frozen=True)
class Swept:
    """What a sweep came to: its environment, the records, and the folder that holds them.

    `stopped` names a signal that came too late to stop it: who has more to do stops then.
    """

    environment: Environment
    records: tuple[CaseRecord, ...]
    folder: Path
    stopped: str | None = None


def sweep(wishes: Wishes, catalogue: Catalogue, cases: Iterable[Case], store: Store, watcher: Watcher) -> Swept:
    """Run the cases as wished and write their records into the store.

    RunError where it cannot start, or was stopped: what ended before is in the journal then, for `--resume`.
    """
    if wishes.machine is not None:
        checked_machine(wishes.machine)
    with Stop() as stop, contextlib.ExitStack() as stack:
        try:
            watcher.doing(f"importing torch with {wishes.python}")
            server = stack.enter_context(Server(wishes.python))
            check_release(wishes.release, server.hello(), wishes.python)
            watcher.doing(f"torch {server.release}: looking at this machine")
            prepared = server.prepare(wishes.engine)
        except Stopped as stopped:
            raise RunError(
                f"stopped by {stopped} before the first attempt; what was kept before still is: run the same command again, with --resume",
            ) from None
        if prepared.engine == "cuda":
            prepared.facts["variables"].setdefault(QUEUES, _FEWER_QUEUES)
        environment = environment_of(server.release, prepared, wishes.machine, wishes.note)
        plan = make_plan(
            catalogue, cases, engine=prepared.engine, attempts=wishes.attempts, sizes=wishes.sizes, limit_s=wishes.limit_s
        )
        folder = store.folder(environment.machine, environment.release)
        check_before_writing(store, environment, {entry.case.name for entry in plan.cases})
        attempts = len(plan.order)
        check_room(store.root, max(_LEAST_FREE_BYTES, attempts * _BYTES_AN_ATTEMPT), f"{attempts} attempts")
        header = header_of(plan, release=server.release, engine=prepared.engine, facts=prepared.facts)
        journal = stack.enter_context(Journal(folder, header, resume=wishes.resume, fresh=wishes.fresh))

        def again() -> Server:
            """A new server in the place of one that died, set up as the first was."""
            fresh = Server(wishes.python)
            fresh.hello()
            fresh.prepare(prepared.engine, facts=False)
            return fresh

        stop.quietly()
        _run(plan, journal, watcher, environment, stop, server, again, wishes)
        records = tuple(record_of(entry, journal.reports, plan.attempts) for entry in plan.cases)
        store.write(environment, records)
        journal.discard()
    return Swept(environment, records, folder, stop.signal)


def _run(
    plan: Plan,
    journal: Journal,
    watcher: Watcher,
    environment: Environment,
    stop: Stop,
    server: Server,
    again: Callable[[], Server],
    wishes: Wishes,
) -> None:
    """Run what the journal does not hold yet; RunError once a signal asked to stop."""
    queue = [(task, number) for task, number in plan.order if (task.name, number) not in journal.reports]
    total = len(plan.order)
    watcher.begun(environment, total - len(queue), total)
    happenings = crew.run_all(
        queue,
        again,
        server=server,
        jobs=wishes.jobs or default_jobs(environment.engine),
        memory_bytes=wishes.memory_bytes or default_memory_bytes(),
    )
    with contextlib.closing(happenings):
        for happened in happenings:
            if happened.task is not None and happened.report is not None:
                journal.add(happened.task.name, happened.attempt, happened.report)
                watcher.attempted(len(journal.reports))
                for entry in _judgeable(plan, journal.reports, happened.task.name, happened.attempt):
                    watcher.judged(entry, happened.attempt, _attempt(entry, journal.reports, happened.attempt))
            if stop.signal is not None and len(journal.reports) < total:
                raise RunError(
                    f"stopped by {stop.signal} after {len(journal.reports)} of {total} attempts; they are kept: "
                    "go on with the same command and --resume",
                )


def _judgeable(plan: Plan, reports: Reports, name: str, number: int) -> Iterator[Planned]:
    """The cases whose attempt can be judged now that this task's has ended."""
    for entry in plan.cases:
        both = {(entry.task.name, number), (entry.reference.name, number)}
        if (name, number) in both and both <= reports.keys():
            yield entry


def record_of(entry: Planned, reports: Reports, attempts: int) -> CaseRecord:
    """The record of a case: attempt k judged beside attempt k of its reference."""
    return CaseRecord(
        case=entry.case.name,
        kind=entry.case.kind,
        version=entry.case.version,
        attempts=tuple(_attempt(entry, reports, number) for number in range(1, attempts + 1)),
        tolerance=entry.notes.tolerance,
        options=dict(entry.options),
        timing=entry.notes.model.timing,
    )


def _attempt(entry: Planned, reports: Reports, number: int) -> Attempt:
    return judge(reports[entry.task.name, number], reports[entry.reference.name, number], entry.notes.tolerance)


def check_release(asked: str | None, imported: str, python: str) -> None:
    """Nothing where the release imported is the one asked for; `2.14.1` takes any build of it. Else RunError."""
    if asked is not None and imported not in (asked, asked + "+" + imported.partition("+")[2]):
        raise RunError(
            f"release {asked!r} was asked for, but {python!r} imports torch {imported!r}: nothing was run. "
            f"Name the interpreter of {asked} with --python, or ask for release {imported}",
        )


def environment_of(release: str, prepared: Prepared, machine: str | None, note: str) -> Environment:
    """The environment as it will be stored: on the machine of this name, else the GPU's, else `model`."""
    gpu = str(prepared.facts["gpu"]["name"])
    name = machine or ("model" if prepared.engine == "model" else slug(gpu))
    recorded = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Environment(name, prepared.engine, release, prepared.facts, note, recorded)


def slug(gpu: str) -> str:
    """A GPU's name as that of a folder: `NVIDIA H200` is `h200`, `NVIDIA GeForce RTX 4090` is `geforce-rtx-4090`."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower().removeprefix("nvidia")).strip("-")[:64] or "gpu"


def check_before_writing(store: Store, environment: Environment, names: set[str]) -> None:
    """StoreError or RunError now for what the store would refuse after the sweep: nobody's time is wasted."""
    store.check_place(environment)
    if environment.release in store.releases(environment.machine):
        store.read(environment.machine, environment.release)  # A damaged file is found now.
    try:
        store.check_environment(environment, names)
    except StoreError as error:
        raise RunError(str(error)) from None


def check_room(root: Path, needed: int, what: str) -> None:
    """RunError where the disk of this folder has no room for so many bytes, which `what` may take."""
    folder = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RunError(
            f"{str(folder)!r} has {free // 2**20} MiB free, but {what} may take {needed // 2**20} MiB: "
            "make room, or choose another folder with --results DIR",
        )


def default_jobs(engine: str) -> int:
    """How many attempts run at once: half the cores and at most 8 on a GPU, where they share it; all cores for the model."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(8, cores // 2)) if engine == "cuda" else cores


def default_memory_bytes() -> int:
    """How much memory an attempt may hold: half of what this machine, or the container it runs in, has."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(Path(path).read_text(encoding="ascii")))
    return max(_LEAST_MEMORY_BYTES, total // 2)
