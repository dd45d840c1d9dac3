"""A Python that has a release: one that was given, one that nox or an earlier search made, or one that is made now."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from replaydrift import environments, host, installers, installing
from replaydrift.environments import Environment
from replaydrift.errors import ReleaseError
from replaydrift.releases import Release, Table, read_table

_INSTALL_LIMIT_S: Final = 3600


@dataclass(frozen=True)
class Interpreters:
    """Where to take interpreters from. `given` has paths by release; environments are those of nox, in `folder`.

    `index` is a person's own index (URL) or folder of wheels; `needs_gpu` False where only the CPU model will run.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path(environments.FOLDER)
    index: str | None = None
    needs_gpu: bool = True
    say: Callable[[str], None] = lambda _: None

    def at_hand(self, release: str) -> str | None:
        """The Python that has this release without anything being installed; None where there is none."""
        wanted = Release.parse(release)
        for name, path in self.given.items():
            has = Release.parse(name)
            if has.version == wanted.version and (None in (has.build, wanted.build) or has.build == wanted.build):
                return path
        made = environments.of_release(self.folder, wanted)
        if made.torch is None or not os.access(made.python, os.X_OK) or not wanted.is_met_by(made.torch):
            return None
        lacks_cuda = self.needs_gpu and made.torch.endswith("+cpu") and wanted.build != "cpu" and host.find_gpus()[1] is not None
        return None if lacks_cuda else str(made.python)

    def python_for(self, release: str) -> str:
        """The Python that has this release, made where there is none yet; ReleaseError with the reason where it cannot be made."""
        there = self.at_hand(release)
        if there is not None:
            return there
        table = read_table()
        return str(self._make(table.known(release), table).python)

    def _make(self, wanted: Release, table: Table) -> Environment:
        """The environment of a release, as nox makes it, so that nox finds it too."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = environments.of_release(self.folder, wanted)
        if made.folder.exists():
            made.remove()
        here = host.look(self.folder)
        ask = self.index is None and not (self.needs_gpu and here.has_gpu)
        planned = installing.plan(
            wanted, here, table, needs_gpu=self.needs_gpu, torch_index=self.index,
            pytorch_answers=ask and host.answers(f"{installing.PYTORCH_INDEX}/cpu/torch/"),
        )  # fmt: skip
        _run(wanted, [planned.python, "-m", "venv", str(made.folder)])
        planned, wheel = installers.settled(planned, str(made.python), table)
        for line in planned.lines():
            self.say(line)
        with installers.scratch(made.folder) as variables:
            for step in installers.commands(planned, str(made.python), wheel):
                _run(wanted, step, variables)
        found = _run(wanted, [str(made.python), "-c", "import torch; print(torch.__version__)"]).strip().splitlines()[-1]
        if not wanted.is_met_by(found):
            raise ReleaseError(f"asked for torch {wanted}, but {found!r} was installed and imported: nothing was run")
        return made.finish({"release": str(wanted), "torch_index": self.index, "torch": found})


def _run(wanted: Release, command: list[str], variables: Mapping[str, str] | None = None) -> str:
    """What the command prints; ReleaseError with its last words where it fails."""
    environment = {**os.environ, **(variables or {})}
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReleaseError(f"{wanted} cannot be installed: {error}") from error
    if answer.returncode != 0:
        words = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
        raise ReleaseError(f"{wanted} cannot be installed: {' '.join(command[:3])} says {(words or ['nothing'])[-1]!r}")
    return answer.stdout
