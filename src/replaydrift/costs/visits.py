"""A block: visits to releases in turns, every one kept as soon as it ends, so that a stopped block goes on where it was.

find out what each interpreter has → what to measure → begin or take up a block → visit, keep, look at the clocks → next.
"""

from __future__ import annotations

import datetime as dt
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

from replaydrift.catalogue import Catalogue
from replaydrift.costs import suite
from replaydrift.costs.cost_store import PLANTED, CostStore, checked_block, is_planted
from replaydrift.costs.curves import prices_of
from replaydrift.costs.launching import Heard, StoppedError, VisitFailedError, listen
from replaydrift.costs.records import Block, Costs, Purpose, Visit
from replaydrift.costs.steps import StepCost
from replaydrift.errors import RunError
from replaydrift.launch import Server
from replaydrift.library import Case
from replaydrift.plan import make_plan
from replaydrift.records import Environment
from replaydrift.stopping import Stop, Stopped
from replaydrift.store import checked_machine
from replaydrift.sweep import check_release, environment_of

# The process is the sample: six a side can tell a few percent apart, twelve of one release make two sides for an A/A run.
VISITS: Final = 6
AA_VISITS: Final = 12
# A visit whose clock is below this share of the others' does not count.
_LEAST_CLOCK: Final = 0.9
_LEAST_FREE_BYTES: Final = 64 * 2**20


@dataclass(frozen=True)
class CostWishes:
    """What a person asked for. `pythons` has a release (None takes whatever is imported) and the Python that has it."""

    pythons: Sequence[tuple[str | None, str]]
    purpose: Purpose = "measure"
    visits: int | None = None
    engine: str = "auto"
    machine: str | None = None
    block: str | None = None
    note: str = ""
    subjects: Sequence[str] = ()
    seconds: float = suite.SECONDS
    sizes: Mapping[str, int] = field(default_factory=dict)
    plant: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    resume: bool = False
    fresh: bool = False


class UnmeasuredError(RunError):
    """All visits were made, but none of some release counts; what else was measured is stored."""


class Watcher(Protocol):
    """Who is told what happens."""

    def doing(self, what: str) -> None:
        """Something that takes a moment has begun."""

    def begun(self, block: Block, done: int) -> None:
        """Visits begin: `done` of the block's are stored already."""

    def measured(self, subject: str) -> None:
        """The visit under way has ended a subject."""

    def visited(self, release: str, visit: Visit) -> None:
        """A visit ended, and is stored; discarded or not."""


@dataclass(frozen=True)
class Measured:
    """What a block came to: its costs, release by release in the order of their first visits, and the folder that holds them."""

    block: Block
    costs: tuple[Costs, ...]
    folder: Path


@dataclass(frozen=True)
class Side:
    """A release of the block: its environment and the Python that has it."""

    environment: Environment
    python: str

    @property
    def release(self) -> str:
        """As `torch.__version__` prints it."""
        return self.environment.release


def order_of(releases: Sequence[str], visits: int) -> tuple[str, ...]:
    """So many visits to each release in turns: A B C, then C B A, and so on, so that what drifts meets all alike."""
    rounds = [releases if number % 2 == 0 else tuple(reversed(releases)) for number in range(visits)]
    return tuple(release for one in rounds for release in one)


def measure(wishes: CostWishes, catalogue: Catalogue, cases: Iterable[Case], store: CostStore, watcher: Watcher) -> Measured:
    """Measure a block, or go on with one, and keep every visit in the store.

    RunError where it cannot start, was stopped (what ended is kept, for `--resume`), or a release could not be measured at all.
    """
    if wishes.machine is not None:
        checked_machine(wishes.machine)
    if wishes.block is not None:
        checked_block(wishes.block)
        if is_planted(wishes.block) != bool(wishes.plant):
            raise RunError(f"block {wishes.block!r}: a name ends in {PLANTED!r} where a slow-down is planted with --plant, and nowhere else")
    if wishes.plant and wishes.purpose != "measure":
        raise RunError(f"a planted slow-down is no block for purpose {wishes.purpose!r}: leave out --purpose")
    with Stop() as stop:
        try:
            sides = [_look(release, python, wishes, watcher) for release, python in wishes.pythons]
        except Stopped as stopped:
            raise RunError(f"stopped by {stopped} before the first visit") from None
        _check_sides(sides, store)
        engine = sides[0].environment.engine
        plan = make_plan(catalogue, cases, engine=engine, attempts=1, sizes=wishes.sizes)
        curves = _curves(store, sides[0].environment.machine)
        request = suite.request(
            plan, engine=engine, patterns=wishes.subjects, seconds=wishes.seconds, plant=wishes.plant, curves=curves,
        )  # fmt: skip
        block, held = _take_up(wishes, sides, suite.hash_of(request), store)
        _check_room(store.root)
        stop.quietly()
        _Visiting(block, {side.release: side for side in sides}, held, request, store, watcher, stop).go()
    folder = store.folder(sides[0].environment.machine, block.name)
    _check_measured(held.values(), folder)
    return Measured(block, tuple(held.values()), folder)


def _look(release: str | None, python: str, wishes: CostWishes, watcher: Watcher) -> Side:
    """What this Python has: the release that is really imported, and the environment of its visits."""
    watcher.doing(f"importing torch with {python}")
    with Server(python) as server:
        check_release(release, server.hello(), python)
        prepared = server.prepare(wishes.engine)
        return Side(environment_of(server.release, prepared, wishes.machine, wishes.note), python)


def _check_sides(sides: Sequence[Side], store: CostStore) -> None:
    """RunError or StoreError where these releases cannot form a block, or not in this store."""
    first = sides[0]
    for number, side in enumerate(sides):
        earlier = next((other for other in sides[:number] if other.release == side.release), None)
        if earlier is not None:
            raise RunError(f"{earlier.python!r} and {side.python!r} both import torch {side.release}: a release has its visits once a block")
        if (side.environment.machine, side.environment.place) != (first.environment.machine, first.environment.place):
            raise RunError(
                f"the releases do not run on one machine: torch {first.release} runs with engine {first.environment.engine!r} on "
                f"{first.environment.gpu!r}, torch {side.release} with engine {side.environment.engine!r} on {side.environment.gpu!r}; "
                "give all a build that runs here, or ask for --engine model"
            )
    store.check_place(first.environment)


def _curves(store: CostStore, machine: str) -> dict[str, StepCost]:
    """What a step of each model costs at each length on this machine, from the newest finished block that tells; none in a new store."""
    found: dict[str, StepCost] = {}
    for name in reversed(store.blocks(machine)):
        if not store.unfinished(machine, name):
            for costs, model in product(store.read_block(machine, name), suite.MODELS):
                prices = prices_of(costs, model)
                if prices is not None:
                    found.setdefault(model, prices.step)
        if found:
            break
    return found


def _take_up(wishes: CostWishes, sides: Sequence[Side], measured: str, store: CostStore) -> tuple[Block, dict[str, Costs]]:
    """The block to make visits of, new or stopped, with what it holds; RunError where a person has to say which."""
    machine, engine = sides[0].environment.machine, sides[0].environment.engine
    visits = wishes.visits or (1 if engine == "model" else AA_VISITS if wishes.purpose == "aa" else VISITS)
    order = order_of([side.release for side in sides], visits)
    name = wishes.block or _stopped(wishes, order, machine, store)
    there = name is not None and name in store.blocks(machine, planted=True)
    if name is None or not there or wishes.fresh:
        if name is not None and there:
            _check_removable(name, machine, store)
            store.remove(machine, name)
        block = Block(wishes.block or _new_name(wishes, machine, store), wishes.purpose, order, measured)
        return block, {side.release: Costs(block, side.environment) for side in sides}
    if not wishes.resume:
        raise RunError(f"block {name!r} of machine {machine!r} holds visits already: go on with --resume, or discard it with --fresh")
    held = {costs.environment.release: costs for costs in store.read_block(machine, name)}
    block = next(iter(held.values())).block
    _check_same(block, Block(name, wishes.purpose, order, measured), held, sides)
    return block, {side.release: held.get(side.release) or Costs(block, side.environment) for side in sides}


def _stopped(wishes: CostWishes, order: tuple[str, ...], machine: str, store: CostStore) -> str | None:
    """The newest block of this purpose and these visits that is not finished; None where there is none."""
    for name in reversed(store.blocks(machine, planted=True)):
        block = store.read_block(machine, name)[0].block
        alike = (block.purpose, block.order, is_planted(name)) == (wishes.purpose, order, bool(wishes.plant))
        if alike and store.unfinished(machine, name):
            return name
    return None


def _check_removable(name: str, machine: str, store: CostStore) -> None:
    """RunError where `--fresh` would take away a block that somebody finished."""
    if not store.unfinished(machine, name):
        raise RunError(f"block {name!r} of machine {machine!r} is finished and stays: choose another name with --block NAME")


def _check_same(then: Block, now: Block, held: Mapping[str, Costs], sides: Sequence[Side]) -> None:
    """RunError where the visits to come would not be like those that the stopped block holds."""
    differing = [what for what in ("purpose", "order", "suite") if getattr(then, what) != getattr(now, what)]
    for side in sides:
        facts = held[side.release].environment.facts if side.release in held else side.environment.facts
        differing += sorted(key for key in {*facts, *side.environment.facts} if facts.get(key) != side.environment.facts.get(key))
    if differing:
        words = {"suite": "what is measured", "order": "releases or number of visits"}
        listed = ", ".join(dict.fromkeys(words.get(what, what) for what in differing))
        raise RunError(
            f"block {then.name!r} differs in {listed}: ask for the same as then with --resume, discard it with --fresh, "
            "or begin another with --block NAME"
        )


def _new_name(wishes: CostWishes, machine: str, store: CostStore) -> str:
    """A name that begins with the time: `20261201-091205-upgrade`; blocks sorted by name are sorted by age."""
    taken, now = store.blocks(machine, planted=True), dt.datetime.now(dt.timezone.utc)
    while (name := f"{now:%Y%m%d-%H%M%S}-{wishes.purpose}{PLANTED if wishes.plant else ''}") in taken:
        now += dt.timedelta(seconds=1)
    return name


def _check_room(root: Path) -> None:
    folder = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE_BYTES:
        raise RunError(
            f"{str(folder)!r} has {free // 2**20} MiB free, but costs may take {_LEAST_FREE_BYTES // 2**20} MiB: "
            "make room, or choose another folder with --results DIR"
        )


def _check_measured(found: Iterable[Costs], folder: Path) -> None:
    """UnmeasuredError where a release has no visit that counts: its costs are missing, those of the others are stored."""
    empty = [costs for costs in found if not costs.kept]
    if empty:
        listed = "; ".join(f"torch {costs.environment.release}: {costs.visits[-1].discarded}" for costs in empty)
        raise UnmeasuredError(f"no visit counts of {len(empty)} release(s): {listed}. What else was measured is in {str(folder)!r}")


@dataclass
class _Visiting:
    """The visits of a block as they are made."""

    block: Block
    sides: Mapping[str, Side]
    held: dict[str, Costs]
    request: Mapping[str, Any]
    store: CostStore
    watcher: Watcher
    stop: Stop

    def go(self) -> None:
        """Make every visit that is missing; RunError once a signal asked to stop."""
        self.watcher.begun(self.block, self._done())
        while (place := self._next()) is not None:
            side = self.sides[self.block.order[place - 1]]
            if self.stop.signal is not None:
                raise self._stopped()
            try:
                visit = self._visit(place, side)
            except StoppedError:
                raise self._stopped() from None
            self._keep(side.release, visit)
            self.watcher.visited(side.release, visit)
            self._discard_slow()

    def _next(self) -> int | None:
        return min((place for costs in self.held.values() for place in costs.missing), default=None)

    def _done(self) -> int:
        return len(self.block.order) - sum(len(costs.missing) for costs in self.held.values())

    def _visit(self, place: int, side: Side) -> Visit:
        """One process of one release; discarded where it failed, imported something else or ran on a throttled GPU."""
        began, clock = dt.datetime.now(dt.timezone.utc), time.monotonic()
        try:
            heard = listen(side.python, self.request, told=self.watcher.measured, stopped=lambda: self.stop.signal is not None)
            discarded = _why_not(heard, side)
        except VisitFailedError as error:
            heard, discarded = error.heard, f"the process {error}"
        return Visit(
            number=place,
            began=began.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - clock, 1),
            subjects=heard.subjects,
            sm_clock_mhz=heard.sm_clock_mhz,
            temperature_c=heard.temperature_c,
            throttled=heard.throttled,
            discarded=discarded,
        )

    def _keep(self, release: str, *more: Visit) -> None:
        costs = self.held[release]
        self.held[release] = replace(costs, visits=(*costs.visits, *more))
        self.store.write(self.held[release])

    def _discard_slow(self) -> None:
        """Discard visits whose clock was well below that of the others: their place is open again."""
        clocks = [visit.sm_clock_mhz for costs in self.held.values() for visit in costs.kept if visit.sm_clock_mhz is not None]
        if len(clocks) < 3:
            return
        usual = median(clocks)
        for release, costs in self.held.items():
            visits = tuple(_unless_slow(visit, usual) for visit in costs.visits)
            if visits != costs.visits:
                self.held[release] = replace(costs, visits=visits)
                self.store.write(self.held[release])
                for before, after in zip(costs.visits, visits, strict=True):
                    if before != after:
                        self.watcher.visited(release, after)

    def _stopped(self) -> RunError:
        return RunError(
            f"stopped by {self.stop.signal} after {self._done()} of {len(self.block.order)} visits; they are kept: "
            "go on with the same command and --resume"
        )


def _why_not(heard: Heard, side: Side) -> str:
    """Why a visit that ended well does not count; empty where it does."""
    if heard.release is not None and heard.release != side.release:
        return f"the process imported torch {heard.release}"
    if heard.throttled:
        return f"the GPU was throttled: {', '.join(heard.throttled)}"
    if not any(subject.metrics for subject in heard.subjects.values()):
        failed = next((subject.failed for subject in heard.subjects.values() if subject.failed), "it named no subject")
        return f"nothing was measured: {failed}"
    return ""


def _unless_slow(visit: Visit, usual: float) -> Visit:
    if visit.discarded or visit.sm_clock_mhz is None or visit.sm_clock_mhz >= _LEAST_CLOCK * usual:
        return visit
    return replace(visit, discarded=f"its SM clock was {visit.sm_clock_mhz:g} MHz, that of the others {usual:g} MHz")
