"""A block: visits to releases in turns, every one kept as soon as it ends, so that a stopped block goes on where it was.

find out what each interpreter has → what to measure → begin or take up a block → visit, keep, look at the clocks → next.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

from replaydrift.catalogue import Catalogue
from replaydrift.costs import suite
from replaydrift.costs.blocks import LEAST_FREE_BYTES, CostWishes, Side, check_names, check_sides, take_up, visits_of
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.curves import prices_of
from replaydrift.costs.launching import Heard, StoppedError, VisitFailedError, listen
from replaydrift.costs.records import Block, Costs, Visit
from replaydrift.costs.refused import refused
from replaydrift.costs.steps import StepCost
from replaydrift.errors import RunError
from replaydrift.launch import Server
from replaydrift.library import Case
from replaydrift.plan import make_plan
from replaydrift.stopping import Stop, Stopped
from replaydrift.store import Store
from replaydrift.sweep import check_release, check_room, environment_of

# A visit whose clock is below this share of the others' does not count. A power cap alone is judged by this too: there are machines
# that always have one.
_LEAST_CLOCK: Final = 0.9
_JUDGED_BY_CLOCK: Final = "power cap"


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


def measure(wishes: CostWishes, catalogue: Catalogue, cases: Iterable[Case], store: CostStore, watcher: Watcher) -> Measured:
    """Measure a block, or go on with one, and keep every visit in the store.

    RunError where it cannot start, was stopped (what ended is kept, for `--resume`), or a release could not be measured at all.
    """
    check_names(wishes)
    with Stop() as stop:
        try:
            sides = [_look(release, python, wishes, watcher) for release, python in wishes.pythons]
            check_sides(sides, store)
            engine, machine = sides[0].environment.engine, sides[0].environment.machine
            plan = make_plan(catalogue, cases, engine=engine, attempts=1, sizes=wishes.sizes)
            request = suite.request(
                plan, engine=engine, patterns=wishes.subjects, seconds=wishes.seconds, plant=wishes.plant, curves=_curves(store, machine),
                shares=1 if wishes.every else min(suite.SHARES, visits_of(wishes, engine)),
            )  # fmt: skip
            check_room(store.root, LEAST_FREE_BYTES, "costs")
            block, held = take_up(wishes, sides, suite.hash_of(request), store)
        except Stopped as stopped:
            raise RunError(f"stopped by {stopped} before the first visit") from None
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
        request = suite.share(self.request, self.block.numbers(side.release).index(place))
        ended_early = refused(Store(self.store.root), side.environment, request["cases"])
        request["cases"] = [case for case in request["cases"] if case["name"] not in ended_early]
        began, clock = dt.datetime.now(dt.timezone.utc), time.monotonic()
        try:
            heard = listen(side.python, request, told=self.watcher.measured, stopped=lambda: self.stop.signal is not None)
            heard.subjects |= ended_early
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
    throttled = [reason for reason in heard.throttled if reason != _JUDGED_BY_CLOCK]
    if throttled:
        return f"the GPU was throttled: {', '.join(throttled)}"
    if not any(subject.metrics for subject in heard.subjects.values()):
        failed = next((subject.failed for subject in heard.subjects.values() if subject.failed), "it named no subject")
        return f"nothing was measured: {failed}"
    return ""


def _unless_slow(visit: Visit, usual: float) -> Visit:
    if visit.discarded or visit.sm_clock_mhz is None or visit.sm_clock_mhz >= _LEAST_CLOCK * usual:
        return visit
    return replace(visit, discarded=f"its SM clock was {visit.sm_clock_mhz:g} MHz, that of the others {usual:g} MHz")
