"""A plugin of asv: runs its benchmarks on the torch environments that nox made, one for each commit of the derived repository.

asv.conf.json names it with a leading dot. One environment with a constant name stands for all releases, so that their
results join into one line and `asv continuous` may interleave them; which interpreter it means depends on the commit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

from asv import util
from asv.console import log
from asv.environment import Environment

from replaydrift import environments
from replaydrift.history.result_files import ENVIRONMENT

# What benchmarks find the interpreter of the release in; the library of benchmarks itself runs on asv's own interpreter.
PYTHON: Final = "REPLAYDRIFT_PYTHON"
RELEASE: Final = "REPLAYDRIFT_RELEASE"


def environment_python(release: str) -> Path:
    """The interpreter that has this release (`2.14.1`), made by nox; where it would be, if nox has not made it yet."""
    root = Path(os.environ.get("NOX_ENVDIR", environments.FOLDER))
    made = environments.of_torch(root, release) or environments.of_release(root, release)
    return made.python.absolute()


class TorchEnvironment(Environment):  # type: ignore[misc]
    """The environment of whichever release is installed last; asv asks to install a commit before it runs anything on it."""

    tool_name = ENVIRONMENT

    def __init__(self, conf: Any, python: str, requirements: Any, tagged_env_vars: Any) -> None:  # noqa: ARG002 - asv's signature
        self._commit: str | None = None
        self._release: dict[str, str] = {}
        self._requirements: dict[str, str] = {}  # asv's own constructor reads it before it sets it.
        super().__init__(conf, "", {}, tagged_env_vars)

    @property
    def name(self) -> str:
        """Constant over releases: it is part of the name of a result file."""
        return ENVIRONMENT

    @property
    def installed_commit_hash(self) -> str | None:
        """The commit that the next benchmark runs on."""
        return self._commit

    @classmethod
    def matches(cls, python: str) -> bool:  # noqa: ARG003 - asv's signature
        """False: asv takes this environment because its configuration says so, not to find a Python."""
        return False

    def check_presence(self) -> bool:
        """True: nox made the environments, there is nothing to create but a folder for asv's notes."""
        Path(self._path).mkdir(parents=True, exist_ok=True)
        return True

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:  # noqa: ARG002 - asv's signature
        """Make the commit's release the one that benchmarks find.

        Where nox has not made its environment asv says so, and the benchmarks fail: the other releases of a range go on.
        """
        release = str(repo.get_name_from_hash(commit_hash)).removeprefix("v")
        python = environment_python(release)
        if not python.is_file():
            log.error(f"there is no environment of torch {release} yet: nox -s matrix -- --release {release}")
        self._release = {PYTHON: str(python), RELEASE: release}
        self._commit = commit_hash
        self._set_commit_hash(commit_hash)

    def run(self, args: list[str], **kwargs: Any) -> Any:
        """What asv asks to be run, on its own interpreter, with the release's named in the environment."""
        env = dict(kwargs.pop("env", None) or os.environ) | self._global_env_vars | self._release
        return util.check_output([sys.executable, *args], env=env, **kwargs)
