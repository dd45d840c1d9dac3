"""Which block the visits belong to: a new one, or one that was stopped and goes on; and what keeps releases from forming one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replaydrift.costs import suite
from replaydrift.costs.cost_store import PLANTED, CostStore, checked_block, is_planted
from replaydrift.costs.records import Block, Costs, Purpose
from replaydrift.errors import RunError
from replaydrift.records import Environment
from replaydrift.store import checked_machine

# The process is the sample: six a side can tell a few percent apart, twelve of one release make two sides for an A/A run.
VISITS: Final = 6
AA_VISITS: Final = 12
LEAST_FREE_BYTES: Final = 64 * 2**20


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
    every: bool = False  # Every case in every visit, however long that takes, instead of a share of them.
    seconds: float = suite.SECONDS
    sizes: Mapping[str, int] = field(default_factory=dict)
    plant: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    resume: bool = False
    fresh: bool = False


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


def visits_of(wishes: CostWishes, engine: str) -> int:
    """How many visits each release gets: as many as wished, else as many as the purpose needs; counts need but one."""
    return wishes.visits or (1 if engine == "model" else AA_VISITS if wishes.purpose == "aa" else VISITS)


def check_names(wishes: CostWishes) -> None:
    """StoreError or RunError where a machine or block cannot be called so."""
    if wishes.machine is not None:
        checked_machine(wishes.machine)
    if wishes.block is not None:
        checked_block(wishes.block)
        if is_planted(wishes.block) != bool(wishes.plant):
            raise RunError(f"block {wishes.block!r}: a name ends in {PLANTED!r} where a slow-down is planted with --plant, and nowhere else")
    if wishes.plant and wishes.purpose != "measure":
        raise RunError(f"a planted slow-down is no block for purpose {wishes.purpose!r}: leave out --purpose")


def check_sides(sides: Sequence[Side], store: CostStore) -> None:
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


def take_up(wishes: CostWishes, sides: Sequence[Side], measured: str, store: CostStore) -> tuple[Block, dict[str, Costs]]:
    """The block to make visits of, new or stopped, with what it holds; RunError where a person has to say which."""
    machine = sides[0].environment.machine
    order = order_of([side.release for side in sides], visits_of(wishes, sides[0].environment.engine))
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
    while (name := f"{now:%Y%m%d-%H%M%S}-{wishes.purpose}{'-' + PLANTED if wishes.plant else ''}") in taken:
        now += dt.timedelta(seconds=1)
    return name
