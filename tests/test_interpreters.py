"""Which Python has a release: one that was given, one of nox's environments, or one that is made now."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from replaydrift import environments, host, interpreters
from replaydrift.errors import ReleaseError
from replaydrift.installers import Wheel
from replaydrift.installing import Plan
from replaydrift.interpreters import Interpreters


def made(root: Path, name: str, torch: str) -> Path:
    """An environment of nox's, finished, with this torch; its interpreter."""
    there = environments.of_release(root, name)
    (there.folder / "bin").mkdir(parents=True)
    (there.folder / "pyvenv.cfg").write_text("")
    there.python.write_text("#!/bin/sh\n")
    there.python.chmod(0o755)
    there.finish({"torch": torch})
    return there.python


def test_a_given_one_comes_first(tmp_path: Path) -> None:
    """A path given for a version holds for any build of it, one given for a build for that build alone."""
    made(tmp_path, "2.14.1", "2.14.1+cu130")
    given = Interpreters({"2.14.1": "/a", "2.13.0+cu126": "/b"}, tmp_path)
    assert given.at_hand("2.14.1+cu130") == "/a"
    assert given.at_hand("2.13.0") == "/b"
    assert given.at_hand("2.13.0+cu130") is None


def test_an_environment_must_have_what_is_asked_for(tmp_path: Path) -> None:
    """An environment counts while its torch is the one asked for and its interpreter can be run."""
    python = made(tmp_path, "2.14.1", "2.14.1+cu130")
    there = Interpreters(folder=tmp_path)
    assert there.at_hand("2.14.1") == str(python)
    assert there.at_hand("2.14.1+cu126") is None
    python.chmod(0o644)
    assert there.at_hand("2.14.1") is None


def test_a_cpu_wheel_will_not_do_beside_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU here, a CPU wheel counts for the model alone, or where it was asked for."""
    python = made(tmp_path, "2.13.0", "2.13.0+cpu")
    monkeypatch.setattr(host, "find_gpus", lambda: ((), "580.1"))
    assert Interpreters(folder=tmp_path).at_hand("2.13.0") is None
    assert Interpreters(folder=tmp_path, needs_gpu=False).at_hand("2.13.0") == str(python)


def wheel(folder: Path, version: str, says: str) -> None:
    """A wheel named torch of this version, whose package says that it is another one."""
    folder.mkdir(exist_ok=True)
    facts = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as packed:
        packed.writestr("torch/__init__.py", f"__version__ = {says!r}\n")
        packed.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        packed.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{facts}/RECORD", "")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install from a folder of wheels alone, and nothing of what a wheel needs."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    plain = interpreters.installers.commands

    def alone(planned: Plan, python: str, wheel: Wheel) -> list[list[str]]:
        steps = plain(replace(planned, requirements=planned.requirements[:1]), python, wheel)
        return [[*step, "--no-index", "--no-deps"] for step in steps]

    monkeypatch.setattr(interpreters.installers, "commands", alone)


@pytest.mark.usefixtures("bare")
def test_one_is_made_as_nox_makes_it(tmp_path: Path) -> None:
    """What is made is found by the next search, and says what it installs before it does."""
    wheel(tmp_path / "wheels", "2.13.0", "2.13.0")
    said: list[str] = []
    there = Interpreters(folder=tmp_path / "nox", index=str(tmp_path / "wheels"), needs_gpu=False, say=said.append)
    python = there.python_for("2.13.0")
    assert there.at_hand("2.13.0") == python
    assert environments.of_release(tmp_path / "nox", "2.13.0").torch == "2.13.0"
    assert any("2.13.0" in line for line in said)


@pytest.mark.usefixtures("bare")
def test_another_torch_than_asked_for_is_refused(tmp_path: Path) -> None:
    """A wheel that imports as another release stops everything, and its environment counts for nothing."""
    wheel(tmp_path / "wheels", "2.13.0", "2.12.0")
    there = Interpreters(folder=tmp_path / "nox", index=str(tmp_path / "wheels"), needs_gpu=False)
    with pytest.raises(ReleaseError, match=r"asked for torch 2\.13\.0, but '2\.12\.0' was installed"):
        there.python_for("2.13.0")
    assert there.at_hand("2.13.0") is None


@pytest.mark.usefixtures("bare")
def test_what_cannot_be_installed(tmp_path: Path) -> None:
    """A release that the table does not know, and one that no wheel is there for, are errors with the reason."""
    (tmp_path / "wheels").mkdir()
    there = Interpreters(folder=tmp_path / "nox", index=str(tmp_path / "wheels"), needs_gpu=False)
    with pytest.raises(ReleaseError, match=r"9\.9\.9"):
        there.python_for("9.9.9")
    with pytest.raises(ReleaseError, match=r"2\.13\.0 cannot be installed: .*No matching distribution found for torch"):
        there.python_for("2.13.0")
