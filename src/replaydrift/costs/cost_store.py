"""The store of costs: results/costs/<machine>/<block>/<release>.json, one readable file a release in a block.

Files are written whole, sorted and indented, samples of a metric on one line. Only this module knows where they are.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from replaydrift import releases
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.records import SCHEMA, Costs, costs_from_json, costs_to_json
from replaydrift.errors import ReleaseError, StoreError
from replaydrift.files import read_tree, to_text, write_whole
from replaydrift.records import Environment
from replaydrift.store import Store, checked_machine

PLANTED: Final = "planted"
_BLOCK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")


@dataclass(frozen=True)
class CostStore:
    """The costs in a folder of results. Reading never changes it; a file that cannot be read raises StoreError naming it."""

    root: Path

    @property
    def costs(self) -> Path:
        """The folder of costs; that of verdicts stands beside it."""
        return self.root / "costs"

    def machines(self) -> tuple[str, ...]:
        """The machines that have costs, sorted."""
        if not self.costs.is_dir():
            return ()
        return tuple(sorted(folder.name for folder in self.costs.iterdir() if self.blocks(folder.name)))

    def blocks(self, machine: str, *, planted: bool = False) -> tuple[str, ...]:
        """The blocks of a machine, sorted by name; the names that the tool gives begin with the time at which they began.

        Those with slow-downs planted on purpose are no costs of a release: they are left out unless asked for.
        """
        folder = self.costs / checked_machine(machine)
        if not folder.is_dir():
            return ()
        names = sorted(child.name for child in folder.iterdir() if _BLOCK.fullmatch(child.name) and any(child.glob("[!.]*.json")))
        return tuple(name for name in names if planted or not is_planted(name))

    def releases(self, machine: str, block: str) -> tuple[str, ...]:
        """The releases that have costs in a block, oldest first."""
        folder = self.folder(machine, block)
        names = [path.name.removesuffix(".json") for path in folder.glob("[!.]*.json")]
        try:
            return tuple(sorted(names, key=releases.order))
        except ReleaseError as error:
            raise StoreError(f"{str(folder)!r} holds a file that is none of replaydrift's: {error}; move it out of the store") from error

    def folder(self, machine: str, block: str) -> Path:
        """Where the costs of this block are, or would be."""
        return self.costs / checked_machine(machine) / checked_block(block)

    def path(self, machine: str, block: str, release: str) -> Path:
        """The file of one release in a block, there or not."""
        if "/" in release or release.startswith("."):
            raise StoreError(f"{release!r} is no release: expected a form such as '2.14.1+cu130'")
        return self.folder(machine, block) / f"{release}.json"

    def read(self, machine: str, block: str, release: str) -> Costs:
        """The costs of one release in one block; StoreError where there are none, or the file is damaged or foreign."""
        path = self.path(machine, block, release)
        if not path.is_file():
            blocks, known = ", ".join(self.blocks(machine)) or "none", ", ".join(self.releases(machine, block)) or "none"
            raise StoreError(
                f"no costs of {release!r} in block {block!r} of machine {machine!r}: releases there are {known}, blocks are {blocks}"
            )
        tree = upgrade(read_tree(path, SCHEMA))
        try:
            costs = costs_from_json(tree)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"{str(path)!r} holds no costs: {error!r}; restore it, or delete it and measure again") from error
        _check_metrics(costs, f"{str(path)!r}: ")
        found = (costs.environment.machine, costs.block.name, costs.environment.release)
        if found != (machine, block, release):
            raise StoreError(
                f"{str(path)!r} belongs elsewhere: it says {found}, its place says {(machine, block, release)}; move it to its own folder"
            )
        return costs

    def read_block(self, machine: str, block: str) -> tuple[Costs, ...]:
        """The costs of every release of a block, oldest first; StoreError where its files do not tell of one block."""
        found = tuple(self.read(machine, block, release) for release in self.releases(machine, block))
        for costs in found[1:]:
            if costs.block != found[0].block:
                raise StoreError(
                    f"{str(self.folder(machine, block))!r} mixes two blocks: {costs.environment.release} says {costs.block}, "
                    f"{found[0].environment.release} says {found[0].block}; restore it, or delete the block and measure again"
                )
        return found

    def everything(self) -> Iterator[Costs]:
        """All costs stored: machine by machine, block by block, releases oldest first."""
        for machine in self.machines():
            for block in self.blocks(machine):
                yield from self.read_block(machine, block)

    def write(self, costs: Costs) -> Path:
        """The file written: all that the block holds of this release now. StoreError, with nothing changed, where it may not be.

        Times of the CPU model are no costs and are refused; so is a metric that the table does not have.
        """
        _check_metrics(costs)
        self.check_place(costs.environment)
        path = self.path(costs.environment.machine, costs.block.name, costs.environment.release)
        return write_whole(path, to_text(costs_to_json(costs), samples=True))

    def remove(self, machine: str, block: str) -> None:
        """Take a whole block away, release by release; StoreError where that is not allowed."""
        folder = self.folder(machine, block)
        try:
            for path in sorted(folder.glob("*.json")):
                path.unlink()
            shutil.rmtree(folder)
        except OSError as error:
            raise StoreError(f"cannot remove {str(folder)!r}: {error.strerror or error}; remove it by hand") from error

    def check_place(self, environment: Environment) -> None:
        """Nothing where the machine's verdicts and costs are of the same engine and GPU; else StoreError. One name, one place."""
        Store(self.root).check_place(environment)
        for block in self.blocks(environment.machine, planted=True):
            for release in self.releases(environment.machine, block):
                other = self.read(environment.machine, block, release).environment
                if other.place != environment.place:
                    raise StoreError(
                        f"machine {environment.machine!r} holds costs of engine {other.engine!r} on {other.gpu!r} (block {block!r}), "
                        f"but these are of engine {environment.engine!r} on {environment.gpu!r}: name another machine with --machine NAME"
                    )
                break  # A block has one place.

    def unfinished(self, machine: str, block: str) -> tuple[int, ...]:
        """The places in the block's order at which a visit is still to be made."""
        found = {costs.environment.release: costs for costs in self.read_block(machine, block)}
        order = next(iter(found.values())).block.order if found else ()
        missing = {release: found[release].missing for release in order if release in found}
        return tuple(number for number, release in enumerate(order, 1) if number in missing.get(release, (number,)))

    def newest(self, machine: str, *names: str) -> str | None:
        """The newest finished block in which all these releases were measured; None where there is none."""
        for block in reversed(self.blocks(machine)):
            if set(names) <= set(self.releases(machine, block)) and not self.unfinished(machine, block):
                return block
        return None


def is_planted(block: str) -> bool:
    """True for a block in which something was slowed down on purpose: its name says so."""
    return block.rsplit("-", maxsplit=1)[-1] == PLANTED


def checked_block(name: str) -> str:
    """The name itself; StoreError where it cannot be a folder's name."""
    if not _BLOCK.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a block: expected letters, digits, '.', '_', '+' and '-', such as '20261201-0900-upgrade'")
    return name


def _check_metrics(costs: Costs, where: str = "") -> None:
    """Nothing where every metric may be stored; else StoreError, which begins with `where` it was found."""
    names = {name for visit in costs.visits for subject in visit.subjects.values() for name in subject.metrics}
    unknown = sorted(names - METRICS.keys())
    if unknown:
        raise StoreError(f"{where}no metric {unknown[0]!r}: expected those of the table in costs/metrics.py; a new one needs its row there")
    times = sorted(name for name in names if not METRICS[name].exact)
    if times and costs.environment.engine == "model":
        raise StoreError(f"{where}{times[0]!r} of the CPU model is no cost: only what is counted may be stored of engine 'model'")


def upgrade(tree: dict[str, Any]) -> dict[str, Any]:
    """The same content in the current schema. A step a version; version 1 is the first."""
    return tree
