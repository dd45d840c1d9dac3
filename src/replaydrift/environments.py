"""The environments that nox makes: where they are, whether one is finished, what they weigh. Standard library only.

An environment is finished when its stamp is there: the stamp is written last, so one whose making was interrupted has none
and is made again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from replaydrift.errors import ReplaydriftError
from replaydrift.releases import Release

FOLDER: Final = ".nox"
STAMP: Final = "replaydrift-environment.json"
_TORCH: Final = "torch-"


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment in `folder`, and the recipe it was made from: None where it was never finished."""

    folder: Path
    recipe: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its folder's name: `driver`, or `torch-2.14.1`."""
        return self.folder.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def release(self) -> str | None:
        """The release it was asked for: `2.14.1`; None where it is not a release's."""
        return self.name.removeprefix(_TORCH) if self.name.startswith(_TORCH) else None

    @property
    def torch(self) -> str | None:
        """What torch prints as its version in it: `2.14.1+cu130`; None where there is no torch or it was never finished."""
        printed = (self.recipe or {}).get("torch")
        return printed if isinstance(printed, str) else None

    def is_made_from(self, recipe: Mapping[str, Any]) -> bool:
        """True where it is finished, its interpreter is still there, and it was made from this recipe."""
        made = self.recipe
        return made is not None and os.access(self.python, os.X_OK) and all(made.get(key) == recipe[key] for key in recipe)

    def finish(self, recipe: Mapping[str, Any]) -> Environment:
        """The finished environment; its stamp is written whole."""
        scratch = self.folder / f".{STAMP}"
        scratch.write_text(json.dumps(recipe, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        scratch.replace(self.folder / STAMP)
        return Environment(self.folder, recipe)

    def remove(self) -> int:
        """Bytes freed by removing it. The stamp goes first: a removal that is interrupted leaves nothing that looks finished."""
        weight = self.weigh()
        try:
            (self.folder / STAMP).unlink(missing_ok=True)
            shutil.rmtree(self.folder)
        except OSError as error:
            raise ReplaydriftError(f"cannot remove {str(self.folder)!r}: {error.strerror}; remove it by hand") from error
        return weight

    def weigh(self) -> int:
        """Bytes on disk of its files, links not followed; a file with several names counts once."""
        seen, total = set(), 0
        for parent, _, names in os.walk(self.folder):
            for name in names:
                try:
                    facts = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - half the time over 30,000 files
                except FileNotFoundError:
                    continue
                if (facts.st_dev, facts.st_ino) not in seen:
                    seen.add((facts.st_dev, facts.st_ino))
                    total += facts.st_blocks * 512
        return total


def open_environment(root: Path, name: str) -> Environment:
    """The environment of this name under `root`, finished or not, there or not."""
    folder = root / name
    try:
        recipe = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        recipe = None
    return Environment(folder, recipe if isinstance(recipe, dict) else None)


def of_release(root: Path, release: str | Release) -> Environment:
    """The environment of a release under `root` (`.nox` of the project), finished or not, there or not."""
    return open_environment(root, f"{_TORCH}{release}")


def of_torch(root: Path, printed: str) -> Environment | None:
    """The finished environment whose torch is `printed`, such as '2.14.1+cu130', or has that version; None where none is.

    For asv, which knows a release by its version alone: `of_torch(root, '2.14.1')` finds `torch-2.14.1` whatever its build.
    """
    wanted = Release.parse(printed)
    found = [made for made in existing(root) if made.torch is not None and wanted.is_met_by(made.torch)]
    return min(found, key=lambda made: len(made.name), default=None)


def existing(root: Path) -> tuple[Environment, ...]:
    """All environments under `root`, by name, the unfinished among them."""
    if not root.is_dir():
        return ()
    return tuple(open_environment(root, folder.name) for folder in sorted(root.iterdir()) if (folder / "pyvenv.cfg").is_file())
