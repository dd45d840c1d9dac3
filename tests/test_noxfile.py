"""Tests of the sessions of nox, run by the real nox in a copy of the project whose environments are stand-ins."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nox", reason="needs nox, which `nox -s tests` installs")

PROJECT = Path(__file__).resolve().parents[1]


class Copy:
    """A project without cases or network: its interpreters write down how they were called, and do what they are told to."""

    def __init__(self, root):
        self.root = root
        self.calls_file = root / "calls"
        for name in ("noxfile.py", "torch-releases.toml", "pyproject.toml"):
            shutil.copy(PROJECT / name, root)
        shutil.copytree(PROJECT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
        project = hashlib.sha256((root / "pyproject.toml").read_bytes()).hexdigest()
        python = sys.version.split()[0]
        self.put("driver", {"install": ["-e", ".[driver]"], "project": project, "python": python})

    def put(self, name, recipe=None, script="exit 0"):
        """An environment, finished where there is a recipe; its interpreter writes down its words and runs the script."""
        folder = self.root / ".nox" / name
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "pyvenv.cfg").write_text("")
        python = folder / "bin" / "python"
        python.write_text(f'#!/bin/sh\necho "$@" >> {self.calls_file}\n{script}\n')
        python.chmod(0o755)
        if recipe is not None:
            (folder / "replaydrift-environment.json").write_text(json.dumps(recipe))

    def put_torch(self, version, printed):
        """A finished environment of a release."""
        self.put(f"torch-{version}", {"release": version, "torch_index": None, "torch": printed})

    def nox(self, *words):
        """Exit code and all that nox prints; pip finds no index and PyTorch's cannot be reached."""
        closed = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull, "https_proxy": "http://127.0.0.1:9"}
        clean = {key: text for key, text in os.environ.items() if not key.startswith(("PIP_", "NOX"))}
        answer = subprocess.run(
            [sys.executable, "-m", "nox", "--no-color", *words],
            cwd=self.root, env=clean | closed, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
            check=False,
        )  # fmt: skip
        return answer.returncode, answer.stdout

    @property
    def calls(self):
        """What the stand-in interpreters were called with, in order."""
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def project(tmp_path):
    """A copy of the project with an environment for the driver."""
    return Copy(tmp_path)


def test_the_sessions_are_listed_with_a_line_each(project):
    """`nox -l` names every session and says in a line what it gives; each release of the table has one."""
    code, text = project.nox("-l")
    lines = [line for line in text.splitlines() if line.startswith(("- ", "* "))]

    assert code == 0
    assert all(" -> " in line for line in lines)
    for name in ("matrix", "release(torch='2.0.0')", "release(torch='2.15.0')", "check", "compare", "publish", "clean"):
        assert any(line.startswith(f"- {name} -> ") for line in lines)
    assert [f"* {name}" for name in ("tests", "lint", "typing")] == [line.split(" -> ")[0] for line in lines if line[0] == "*"]


def test_a_matrix_runs_the_releases_then_measures_and_publishes_once(project):
    """Each release is swept in its own environment, in the order asked for, with the options passed on; then one block, one publish."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    project.put_torch("2.14.1", "2.14.1+cu130")
    code, text = project.nox("-s", "matrix", "--", "--release", "2.14.1", "--release", "2.13.0", "--engine", "model", "--attempts", "1",
                             "--cases", "rng/*", "--visits", "2", "--subjects=chain/*", "--every-case")  # fmt: skip

    assert code == 0, text
    assert project.calls == [
        "-m replaydrift run --python .nox/torch-2.14.1/bin/python --release 2.14.1 --engine model --resume --attempts 1 --cases rng/*",
        "-m replaydrift run --python .nox/torch-2.13.0/bin/python --release 2.13.0 --engine model --resume --attempts 1 --cases rng/*",
        ("-m replaydrift measure --purpose matrix --python=2.14.1=.nox/torch-2.14.1/bin/python "
        "--python=2.13.0=.nox/torch-2.13.0/bin/python --engine model --resume --cases=rng/* --visits=2 --subjects=chain/* --every-case"),
        "-m replaydrift publish --readme README.md",
    ]
    assert "2 of 2 releases done" in text


def test_a_matrix_takes_the_default_releases(project):
    """Without --release those that the table marks are run."""
    for version in ("2.13.0", "2.14.1", "2.15.0"):
        project.put_torch(version, f"{version}+cu130")
    code, text = project.nox("-s", "matrix", "--", "--engine", "model")

    assert code == 0, text
    assert [line.split(" --engine")[0] for line in project.calls[:2]] == [
        f"-m replaydrift run --python .nox/torch-{version}/bin/python --release {version}" for version in ("2.13.0", "2.14.1")
    ]


def test_results_of_another_store_do_not_touch_the_committed_report(project):
    """With --results the report goes beside those results."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    project.nox("-s", "matrix", "--", "--release", "2.13.0", "--results", "/tmp/mine", "--engine", "model", "--fresh")

    assert project.calls[0].endswith("--engine model --fresh --results /tmp/mine")
    assert project.calls[1].endswith("--engine model --fresh --results /tmp/mine")
    assert project.calls[2] == "-m replaydrift publish --results /tmp/mine --reports /tmp/mine/reports"


def test_a_release_that_cannot_be_installed_is_reported_and_the_others_go_on(project):
    """The one that fails is named at the end with pip's words, the other is swept and published, and nox says failed."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    code, text = project.nox("-s", "matrix", "--", "--release", "2.14.1", "--release", "2.13.0", "--engine", "model")
    summary = text[text.index("Running session publish") :]

    assert code == 1
    assert [line.split()[2] for line in project.calls] == ["run", "measure", "publish"]
    assert "2.14.1" not in project.calls[1]
    assert "2.14.1: 2.14.1 cannot be installed: pip says 'No matching distribution found for torch==2.14.1'" in summary
    assert "2.13.0: done: 2.13.0+cpu" in summary
    assert "1 of 2 releases done" in summary


def test_a_half_made_environment_is_made_again(project):
    """An environment without its stamp is thrown away, not used."""
    project.put("torch-2.14.1")
    left = project.root / ".nox" / "torch-2.14.1" / "left-over"
    left.write_text("half")
    code, _ = project.nox("-s", "release(torch='2.14.1')", "--", "--engine", "model")

    assert code == 1
    assert not left.exists()
    assert project.calls == []


def test_a_sweep_that_fails_is_reported(project):
    """The session of a release whose sweep fails has failed, and the report is made all the same."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    project.put("driver", script='case "$3" in run) exit 2;; esac')
    code, text = project.nox("-s", "matrix", "--", "--release", "2.13.0", "--engine", "model")

    assert code == 1
    assert project.calls[-1] == "-m replaydrift publish --readme README.md"
    assert "2.13.0: the sweep on 2.13.0+cpu did not finish" in text


def test_a_matrix_without_costs(project):
    """With --no-costs nothing is measured."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    code, text = project.nox("-s", "matrix", "--", "--release", "2.13.0", "--engine", "model", "--no-costs")

    assert code == 0, text
    assert [line.split()[2] for line in project.calls] == ["run", "publish"]


def test_costs_that_fail_leave_the_verdicts(project):
    """The report is made all the same, and nox says that the measurement failed."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    project.put("driver", script='case "$3" in measure) exit 2;; esac')
    code, text = project.nox("-s", "matrix", "--", "--release", "2.13.0", "--engine", "model")

    assert code == 1
    assert [line.split()[2] for line in project.calls] == ["run", "measure", "publish"]
    assert "1 of 1 releases done" in text
    assert "costs: failed" in text


def test_an_upgrade_measures_costs(project):
    """Both releases go to one command, which runs, measures and checks."""
    for version in ("2.13.0", "2.14.1"):
        project.put_torch(version, f"{version}+cu130")
    code, text = project.nox("-s", "upgrade", "--", "2.13.0", "2.14.1", "--engine", "model", "--visits", "3", "--machine", "mine")

    assert code == 0, text
    assert project.calls == [
        ("-m replaydrift upgrade --python=2.13.0=.nox/torch-2.13.0/bin/python --python=2.14.1=.nox/torch-2.14.1/bin/python "
        "--engine model --resume --machine mine --visits=3"),
    ]
    project.nox("-s", "upgrade", "--", "2.13.0", "2.14.1", "--engine", "model", "--no-costs")
    assert project.calls[1].endswith("--engine model --resume --no-costs")


def test_a_release_against_itself(project):
    """`aa` measures one release in a block of its own, then reads it; without a release it says what it expects."""
    project.put_torch("2.14.1", "2.14.1+cu130")
    code, text = project.nox("-s", "aa", "--", "2.14.1", "--engine", "model", "--machine", "mine")

    assert code == 0, text
    assert project.calls == [
        "-m replaydrift measure --purpose aa --python=2.14.1=.nox/torch-2.14.1/bin/python --engine model --resume --machine=mine",
        "-m replaydrift aa --machine mine",
    ]
    code, text = project.nox("-s", "aa")
    assert code == 1
    assert "expected one release" in text


@pytest.mark.parametrize("words", [("-s", "matrix", "--", "--release", "2.14"), ("-s", "release(torch='2.14.9')")])
def test_an_unknown_release_is_refused_with_those_near_it(project, words):
    """A release that the table does not know stops nox before anything is done."""
    code, text = project.nox(*words)

    assert code != 0
    assert "near it are" in text
    assert "2.14.1" in text


def test_another_build_has_a_session_when_it_is_asked_for(project):
    """A build is no row of the table, yet `release(torch='2.14.1+cu126')` is a session of its own."""
    project.put_torch("2.14.1+cu126", "2.14.1+cu126")
    code, text = project.nox("-s", "release(torch='2.14.1+cu126')", "--", "--engine", "model")

    assert code == 0, text
    assert "--release 2.14.1+cu126" in project.calls[0]


@pytest.mark.parametrize("answer", [0, 1, 2])
def test_a_check_that_does_not_answer_0_fails(project, answer):
    """For nox there is success and failure: every answer but 0 is a failure."""
    project.put("driver", script=f"exit {answer}")
    code, _ = project.nox("-s", "check", "--", "2.13.0", "2.14.1", "--machine", "model")

    assert code == min(answer, 1)
    assert project.calls == ["-m replaydrift check 2.13.0 2.14.1 --machine model"]


def test_clean_frees_the_environments_and_says_how_much(project):
    """Every environment is removed and weighed; the results stay."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    (project.root / ".nox" / "torch-2.13.0" / "weight").write_bytes(os.urandom(30_000_000))
    (project.root / "results").mkdir()
    code, text = project.nox("-s", "clean")

    assert code == 0
    assert "removed torch-2.13.0: 0.03 GB" in text
    assert "freed 0.03 GB" in text
    assert not (project.root / ".nox" / "driver").exists()
    assert (project.root / "results").is_dir()


def test_clean_takes_names(project):
    """Only the environments named are removed; a name that is none is an error that lists those there are."""
    project.put_torch("2.13.0", "2.13.0+cpu")
    code, text = project.nox("-s", "clean", "--", "torch-2.99.0")

    assert code == 1
    assert "['driver', 'torch-2.13.0']" in text
    assert project.nox("-s", "clean", "--", "torch-2.13.0")[0] == 0
    assert (project.root / ".nox" / "driver").exists()
