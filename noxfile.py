"""The everyday entrance: environments of torch releases, the cases run in them, the report, and the project's own checks.

`nox -l` lists the sessions. The first line of each says what it gives you; what follows `--` goes to it.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import nox
from nox.command import CommandFailed

if not sys.platform.startswith("linux") or not (3, 10) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        f"error: found Python {sys.version_info[0]}.{sys.version_info[1]} on {sys.platform!r}, expected Python 3.10 to 3.13 "
        "on Linux: install nox with one of those, for example python3.12 -m pip install nox",
    )
sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from replaydrift import environments, host, installers, installing
from replaydrift.errors import ReleaseError, ReplaydriftError
from replaydrift.releases import Release, read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replaydrift.environments import Environment

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["tests", "lint", "typing"]
nox.options.default_venv_backend = "none"

PROJECT = Path(__file__).resolve().parent
TABLE = read_table(PROJECT / "torch-releases.toml")
# The tests want a torch that works without a GPU, any one will do; this is the smallest default release.
TESTED_WITH = "2.13.0"
RUFF, MYPY = "ruff==0.17.6", "mypy==2.4.1"
# What became of each release in this run of nox, for the summary at its end.
BECAME: dict[str, str] = {}
# The same of costs, where they were not measured.
BECAME_OF_COSTS: list[str] = []


def listed_releases() -> list[str]:
    """Every version of the table, and what this command line names besides: other builds, nightlies."""
    named = re.findall(r"(?:--release[ =]|release\(torch=')([^\s']+)", " ".join(sys.argv[1:]))
    try:
        return list(dict.fromkeys([*(entry.version for entry in TABLE.entries), *(str(TABLE.known(text)) for text in named)]))
    except ReleaseError as error:
        sys.exit(f"error: {error}")


@nox.session
def matrix(session: nox.Session) -> None:
    """Run the cases on the default releases, or those of `-- --release 2.14.1 --release 2.15.0`, measure costs, then publish."""
    options = read_options(session.posargs)
    names = [str(TABLE.known(name)) for name in options.release or TABLE.defaults]
    for name in names:
        session.notify(f"release(torch='{name}')", options.to_pass_on)
    if not options.no_costs:
        session.notify("costs", [*(f"--release={name}" for name in names), *options.to_pass_on])
    session.notify("publish", options.to_publish)


@nox.session
@nox.parametrize("torch", listed_releases())
def release(session: nox.Session, torch: str) -> None:
    """Run the cases on one release, such as `nox -s "release(torch='2.15.0')"`, then publish."""
    options = read_options(session.posargs)
    BECAME[torch] = "did not get as far as an environment"
    driver = make(session, "driver", "-e", ".[driver]")
    try:
        made = make_torch(session, torch, options)
    except ReplaydriftError as error:
        BECAME[torch] = str(error)
        session.error(str(error))
    BECAME[torch] = f"the sweep on {made.torch} did not finish: see above, then run the same command again"
    session.run(
        driver, "-m", "replaydrift", "run", "--python", made.python, "--release", torch, *options.to_run,
        external=True,
    )  # fmt: skip
    BECAME[torch] = f"done: {made.torch}"
    session.notify("publish", options.to_publish)


@nox.session
def costs(session: nox.Session) -> None:
    """Measure costs of the releases in turns: `nox -s costs -- --release 2.14.1 --release 2.15.0`; `matrix` does it after its sweeps."""
    options = read_options(session.posargs)
    driver = make(session, "driver", "-e", ".[driver]")
    # Where a release's sweep has just failed its costs would say nothing, and the others are measured without it.
    names = [name for name in options.release or TABLE.defaults if BECAME.get(name, "done").startswith("done")]
    if not names:
        session.skip("no release is left to measure")
    pythons = pythons_of(session, names, options)
    BECAME_OF_COSTS.append("failed or stopped: see above, then run `nox -s costs` with the same options")
    session.run(driver, "-m", "replaydrift", "measure", "--purpose", "matrix", *pythons, *options.to_measure, external=True)
    BECAME_OF_COSTS.clear()
    session.notify("publish", options.to_publish)


@nox.session
def publish(session: nox.Session) -> None:
    """Write the report and asv's site from the store, and say what became of the releases run before."""
    driver = make(session, "driver", "-e", ".[driver]")
    # README shows the project's own store; another store's matrix has no place in it.
    readme = [] if "--results" in session.posargs else ["--readme", "README.md"]
    try:
        session.run(driver, "-m", "replaydrift", "publish", *session.posargs, *readme, external=True)
    finally:
        for name, became in BECAME.items():
            (session.log if became.startswith("done") else session.warn)(f"{name}: {became}")
        for became in BECAME_OF_COSTS:
            session.warn(f"costs: {became}")
        failed = sum(not became.startswith("done") for became in BECAME.values())
        if BECAME:
            session.log(f"{len(BECAME) - failed} of {len(BECAME)} releases done")


@nox.session
def check(session: nox.Session) -> None:
    """May I upgrade? The changes between two stored releases: `nox -s check -- 2.13.0 2.14.1 --machine h200`."""
    driver = make(session, "driver", "-e", ".[driver]")
    session.run(driver, "-m", "replaydrift", "check", *session.posargs, external=True)


@nox.session
def upgrade(session: nox.Session) -> None:
    """Run two releases in turns, run again whatever differs, measure costs, then check: `nox -s upgrade -- 2.13.0 2.14.1`."""
    names, options = [word for word in session.posargs[:2] if not word.startswith("-")], read_options(session.posargs[2:])
    if len(names) != 2:
        session.error(f"found {' '.join(session.posargs) or 'nothing'} after --, expected the old release, the new one, then options")
    driver = make(session, "driver", "-e", ".[driver]")
    pythons = pythons_of(session, names, options)
    session.run(driver, "-m", "replaydrift", "upgrade", *pythons, *options.to_run, *options.costs_of_upgrade, external=True)


@nox.session
def aa(session: nox.Session) -> None:
    """Does the gate cry wolf? One release against itself: `nox -s aa -- 2.14.1`, then `replaydrift aa` on what was measured."""
    names, options = [word for word in session.posargs[:1] if not word.startswith("-")], read_options(session.posargs[1:])
    if len(names) != 1:
        session.error(f"found {' '.join(session.posargs) or 'nothing'} after --, expected one release, then options")
    driver = make(session, "driver", "-e", ".[driver]")
    pythons = pythons_of(session, names, options)
    session.run(driver, "-m", "replaydrift", "measure", "--purpose", "aa", *pythons, *options.to_measure, external=True)
    session.run(driver, "-m", "replaydrift", "aa", *options.to_aa, external=True)


@nox.session
def bisect(session: nox.Session) -> None:
    """Since which release? `nox -s bisect -- rng/custom-unregistered --good 2.11.0 --bad 2.15.0`, installing as it goes."""
    driver = make(session, "driver", "-e", ".[driver]")
    folder = f"--environments={folder_of(session)}"
    session.run(driver, "-m", "replaydrift", "bisect", folder, *session.posargs, external=True)


@nox.session
def compare(session: nox.Session) -> None:
    """Set two stores side by side: `nox -s compare -- --results mine --results results`."""
    driver = make(session, "driver", "-e", ".[driver]")
    session.run(driver, "-m", "replaydrift", "compare", *session.posargs, external=True)


@nox.session
def clean(session: nox.Session) -> None:
    """Remove the environments, all or those named (`-- torch-2.14.1`), and say how much that frees."""
    there = environments.existing(folder_of(session))
    unknown = set(session.posargs) - {made.name for made in there}
    if unknown:
        session.error(f"no environment {sorted(unknown)}: there are {[made.name for made in there] or 'none'}")
    freed = 0
    for made in there:
        if not session.posargs or made.name in session.posargs:
            weight = made.remove()
            freed += weight
            session.log(f"removed {made.name}: {weight / 1e9:.2f} GB")
    session.log(f"freed {freed / 1e9:.2f} GB; results and reports are untouched")


@nox.session
def tests(session: nox.Session) -> None:
    """Run pytest beside a torch that needs no GPU; `-- --no-torch` leaves torch out, the rest goes to pytest."""
    posargs = [word for word in session.posargs if word != "--no-torch"]
    if len(posargs) < len(session.posargs):
        python = make(session, "tests-no-torch", "-e", ".[driver,test]", "nox")
    else:
        planned = plan_for(session, Release(TESTED_WITH), read_options(["--engine", "model"]), own_python=True)
        python = make(session, "tests", *planned.options, "-e", ".[driver,test]", "nox", *planned.requirements)
    session.run(python, "-m", "pytest", *posargs, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Hold the code against the rules of ruff in pyproject.toml."""
    python = make(session, "lint", RUFF)
    session.run(python, "-m", "ruff", "check", *(session.posargs or ["."]), external=True)


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types of the package and of this file with mypy."""
    python = make(session, "typing", "-e", ".[driver,test]", MYPY, "nox", "types-Pygments")
    session.run(python, "-m", "mypy", *session.posargs, external=True)
    session.run(python, "-m", "mypy", "noxfile.py", external=True)


class Options(argparse.Namespace):
    """What follows `--`: what the sessions read themselves, and in `others` what goes on to `replaydrift run`."""

    release: list[str]
    torch_index: str | None
    results: str | None
    engine: str
    uv: bool
    fresh: bool
    no_costs: bool
    visits: str | None
    subjects: list[str]
    seconds: str | None
    every_case: bool
    others: list[str]

    @property
    def to_run(self) -> list[str]:
        """The options of `replaydrift run`; a sweep that was interrupted goes on unless `--fresh` is asked for."""
        return [*self._own, *self._store, *self.others]

    @property
    def to_measure(self) -> list[str]:
        """The options of `replaydrift measure`: those of a sweep that it has too, and its own."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for name in _OF_BOTH:
            parser.add_argument(name, action="append", default=[])
        shared, _ = parser.parse_known_args(self.others)
        given = [f"{name}={text}" for name in _OF_BOTH for text in getattr(shared, name[2:].replace("-", "_"))]
        return [*self._own, *self._store, *given, *self._costs]

    @property
    def costs_of_upgrade(self) -> list[str]:
        """What `replaydrift upgrade` takes beside the options of a sweep."""
        return ["--no-costs"] * self.no_costs + ([f"--visits={self.visits}"] if self.visits else [])

    @property
    def to_aa(self) -> list[str]:
        """The options of `replaydrift aa`."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--machine")
        machine = parser.parse_known_args(self.others)[0].machine
        return [*self._store, *(["--machine", machine] if machine else [])]

    @property
    def to_publish(self) -> list[str]:
        """The options of `replaydrift publish`; the report of another store goes beside it, not over the committed one."""
        return [*self._store, "--reports", f"{self.results}/reports"] if self.results else []

    @property
    def to_pass_on(self) -> list[str]:
        """The options of one release's session: all but the releases."""
        index = ["--torch-index", self.torch_index] if self.torch_index else []
        flags = ["--uv"] * self.uv + ["--fresh"] * self.fresh
        return [*index, *flags, "--engine", self.engine, *self._store, *self._costs, *self.others]

    @property
    def _own(self) -> list[str]:
        return ["--engine", self.engine, "--fresh" if self.fresh else "--resume"]

    @property
    def _store(self) -> list[str]:
        return ["--results", self.results] if self.results else []

    @property
    def _costs(self) -> list[str]:
        said = {"--visits": self.visits, "--seconds": self.seconds}
        given = [*(f"{name}={text}" for name, text in said.items() if text), *(f"--subjects={text}" for text in self.subjects)]
        return [*given, *["--every-case"] * self.every_case]


# What `replaydrift run` and `replaydrift measure` both take.
_OF_BOTH = ("--machine", "--note", "--cases", "--cases-dir", "--size")


def read_options(words: Sequence[str]) -> Options:
    """The words that follow `--` as options."""
    parser = argparse.ArgumentParser(prog="nox -s matrix --", add_help=False, allow_abbrev=False)
    parser.add_argument("--release", action="append", default=[])
    parser.add_argument("--torch-index")
    parser.add_argument("--results")
    parser.add_argument("--engine", default="auto", choices=["auto", "cuda", "model"])
    parser.add_argument("--uv", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--no-costs", action="store_true")
    parser.add_argument("--visits")
    parser.add_argument("--subjects", action="append", default=[])
    parser.add_argument("--seconds")
    parser.add_argument("--every-case", action="store_true")
    options, others = parser.parse_known_args(list(words), namespace=Options())
    options.others = others
    return options


def pythons_of(session: nox.Session, names: Sequence[str], options: Options) -> list[str]:
    """`--python=RELEASE=PATH` for each of these releases, its environment made where it is not yet."""
    try:
        return [f"--python={name}={make_torch(session, name, options).python}" for name in names]
    except ReplaydriftError as error:
        session.error(str(error))


def folder_of(session: nox.Session) -> Path:
    """The folder of the environments: `.nox`, or what `nox --envdir` says, which nox tells only by way of its cache."""
    return Path(session.cache_dir).parent


def make(session: nox.Session, name: str, *words: str) -> Path:
    """The interpreter of the environment `name`, in which `pip install <words>` was done; made only where it is not yet."""
    project = hashlib.sha256((PROJECT / "pyproject.toml").read_bytes()).hexdigest()
    recipe = {"install": list(words), "project": project, "python": sys.version.split()[0]}
    made = environments.open_environment(folder_of(session), name)
    if not made.is_made_from(recipe):
        session.log(f"makes the environment {made.folder}")
        begin(session, made, sys.executable)
        session.run(made.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words, external=True)
        made.finish(recipe)
    return made.python


def make_torch(session: nox.Session, name: str, options: Options) -> Environment:
    """The environment of a release, made only where it is not yet; ReleaseError where that cannot be done."""
    wanted = TABLE.known(name)
    made = environments.of_release(folder_of(session), wanted)
    recipe = {"release": str(wanted), "torch_index": options.torch_index}
    lacks_cuda = (made.torch or "").endswith("+cpu") and wanted.build != "cpu" and options.engine != "model"
    if made.is_made_from(recipe) and not (lacks_cuda and host.find_gpus()[1]):
        session.log(f"takes torch {made.torch} as it is in {made.folder}")
        return made
    if made.folder.exists() and made.recipe is None:
        made.remove()  # An installation that was interrupted, for the lack of room maybe: that room is wanted now.
    planned, uv, wheel = plan_for(session, wanted, options), find_uv(session) if options.uv else None, None
    if uv is not None and planned.one_by_one:
        session.log("uv fetches all packages at once, for which there is no room: uses pip")
        uv = None
    begin(session, made, planned.python, uv)
    if uv is None:
        planned, wheel = installers.settled(planned, str(made.python), TABLE)
    for line in planned.lines():
        session.log(line)
    try:
        with installers.scratch(made.folder) as variables:
            for step in installers.commands(planned, str(made.python), wheel, uv):
                session.run(*step, external=True, env=variables)
        printed = session.run(made.python, "-c", "import torch; print(torch.__version__)", external=True, silent=True)
    except CommandFailed as error:
        raise ReleaseError(f"{wanted} cannot be installed: the words of {error.reason or 'pip'} are above") from error
    found = str(printed).strip().splitlines()[-1]
    if not wanted.is_met_by(found):
        raise ReleaseError(f"asked for torch {wanted}, but {found!r} was installed and imported: nothing was run")
    return made.finish({**recipe, "torch": found})


def plan_for(session: nox.Session, wanted: Release, options: Options, *, own_python: bool = False) -> installing.Plan:
    """How to install a release here; PyTorch's index is asked only where a CPU wheel is wanted and no index is given."""
    folder_of(session).mkdir(parents=True, exist_ok=True)
    here = host.look(folder_of(session))
    if own_python:
        here = replace(here, pythons={here.own: sys.executable})
    needs_gpu = options.engine != "model"
    ask = options.torch_index is None and not (needs_gpu and here.has_gpu)
    reached = ask and host.answers(f"{installing.PYTORCH_INDEX}/cpu/torch/")
    if ask and not reached:
        session.log("PyTorch's own index, which has CPU wheels, does not answer: takes what the package index has")
    return installing.plan(
        wanted, here, TABLE, needs_gpu=needs_gpu, torch_index=options.torch_index, pytorch_answers=reached,
    )  # fmt: skip


def begin(session: nox.Session, made: Environment, python: str, uv: str | None = None) -> None:
    """An empty environment in the place of whatever is there, finished or half made."""
    if made.folder.exists():
        made.remove()
    maker = [uv, "venv", "-q", "--python", python] if uv else [sys.executable, "-m", "virtualenv", "-q", "--python", python]
    session.run(*maker, made.folder, external=True)


def find_uv(session: nox.Session) -> str | None:
    """The uv that is installed beside nox or on the path; None, with a warning, where there is none: then pip is used."""
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if uv is None:
        session.warn("--uv was asked for, but there is no uv (python3 -m pip install uv): uses pip")
    return uv
