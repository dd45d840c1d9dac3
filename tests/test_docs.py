"""Every command that README and docs/ show is one that works: blocks are run, words in running text name what there is."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml
from toybox import SOURCE, environ

from replaydrift.cli import cli

ROOT = SOURCE.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:replaydrift|nox) [^`]*)`")
CHAPTER = 'def eager():\n    yield "replay", 1\n\n\ndef fix():\n    yield "replay", 1\n'


def blocks(page: str, kind: str) -> list[str]:
    """The code blocks of a page that are marked as `kind`."""
    return [text for found, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if found == kind]


def commands(text: str) -> list[str]:
    """The commands of a console block, without what is said of them."""
    return [line[2:].partition("  # ")[0].strip() for line in text.splitlines() if line.startswith("$ ")]


def interpreter(path: Path, release: str) -> None:
    """A Python whose (fake) torch is this release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nFAKE_TORCH_RELEASE={release}+cu130 exec {sys.executable} "$@"\n')
    path.chmod(0o755)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `replaydrift` is this project's, `python` runs a script on the CPU model, and torch is the fake one."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("replaydrift", "-m replaydrift"), ("python", "-m replaydrift.model")):
        (bin_ / name).write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE}:$PYTHONPATH exec {sys.executable} {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    return environ(PATH=f"{bin_}:{os.environ['PATH']}", GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"))


def run(command: str, where: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a shell makes of the command."""
    return subprocess.run(["bash", "-ec", command], cwd=where, env=given, capture_output=True, text=True, timeout=300, check=False)


def test_every_console_block_is_known() -> None:
    """A page that comes to show commands needs a test of them here."""
    shown = {str(page.relative_to(ROOT)) for page in PAGES if blocks(str(page.relative_to(ROOT)), "console")}
    assert shown == {"README.md", "docs/adding-a-case.md", "docs/choosing-buckets.md", "docs/model.md", "docs/running-on-a-gpu.md"}


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_adding_a_case(tmp_path: Path, shell: dict[str, str]) -> None:
    """The case that the page shows is listed, runs on the CPU model, and is wrong on its own as the page says."""
    (tmp_path / "my_cases").mkdir()
    (chapter,) = blocks("docs/adding-a-case.md", "python")
    (tmp_path / "my_cases" / "foo.py").write_text(chapter)
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "env" / "bin" / "python").chmod(0o755)
    del shell["PYTHONPATH"]  # Here torch is the real one.
    (block,) = blocks("docs/adding-a-case.md", "console")
    listed, ran, alone = (run(command, tmp_path, shell) for command in commands(block))
    assert (listed.returncode, "foo/bug" in listed.stdout) == (0, True)
    assert (ran.returncode, ran.stderr.count("Traceback")) == (0, 0)
    (stored,) = (tmp_path / "results").rglob("foo.json")
    assert '"outcome": "wrong"' in stored.read_text()
    assert alone.returncode == 1
    assert alone.stdout.count("<- differs") == 3


FROZEN = """import torch


def capture():
    x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    return graph, y


graph, y = capture()
other = torch.randn(4, device="cuda")
graph.replay()
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_the_model_by_itself(tmp_path: Path, shell: dict[str, str]) -> None:
    """The report of the model that the page shows is what the model says, word for word."""
    (tmp_path / "frozen.py").write_text(FROZEN)
    del shell["PYTHONPATH"]
    asked, said = blocks("docs/model.md", "console")
    (command,) = commands(asked)
    ran = run(command.replace("python -m replaydrift.model script.py", "python frozen.py"), tmp_path, shell)
    assert ran.returncode == 0
    assert said.strip() in ran.stdout + ran.stderr


def test_running_on_a_gpu(tmp_path: Path, shell: dict[str, str]) -> None:
    """The commands for interpreters that are there already run one after the other, each with exit code 0."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "own.py").write_text(CHAPTER)
    first, second = blocks("docs/running-on-a-gpu.md", "console")
    for version in ("2.13", "2.15"):
        interpreter(tmp_path / f"torch-{version}" / "bin" / "python", f"{version}.0")
    doctor = run(commands(first)[0], tmp_path, shell)
    assert (doctor.returncode, doctor.stderr) == (0, "")
    for command in commands(second):
        if "compare" in command:
            (tmp_path / "results").rename(tmp_path / "reference")
            run(commands(second)[0].replace("/opt", str(tmp_path)), tmp_path, shell)
        own = command.replace("--machine NAME --machine h200", "--results reference").replace("NAME", "fake-h200")
        ran = run(own.replace("/opt", str(tmp_path)), tmp_path, shell)
        assert ran.returncode == 0, f"{command}: {ran.stdout} {ran.stderr}"


def test_choosing_buckets(tmp_path: Path, shell: dict[str, str]) -> None:
    """Each command advises a list that ends with the longest length; the one with prices says what it costs."""
    (tmp_path / "lengths.csv").write_text("".join(f"{length}\n" for length in (16, 20, 20, 31, 64, 64, 100)))
    (block,) = blocks("docs/choosing-buckets.md", "console")
    plain, priced, for_programs = (run(command, tmp_path, shell) for command in commands(block))
    assert (plain.returncode, priced.returncode, for_programs.returncode) == (0, 0, 0), plain.stderr + priced.stderr
    assert "nothing below is a time" in plain.stdout
    assert "40 + 0.3 × length µs" in priced.stdout
    assert json.loads(for_programs.stdout)["best"]["buckets"][-1] == 112


def test_in_your_ci(tmp_path: Path, shell: dict[str, str]) -> None:
    """The steps of the workflow that run cases and check them leave a summary; those before only install."""
    (block,) = blocks("docs/in-your-ci.md", "yaml")
    (tmp_path / "my_cases").mkdir()
    (tmp_path / "my_cases" / "own.py").write_text(CHAPTER)
    (tmp_path / "driver" / "bin").mkdir(parents=True)
    (tmp_path / "driver" / "bin" / "replaydrift").symlink_to(tmp_path / "bin" / "replaydrift")
    for release in ("2.13.0", "2.15.0"):
        interpreter(tmp_path / f"torch-{release}" / "bin" / "python", release)
    workflow = yaml.safe_load(block)
    (job,) = workflow["jobs"].values()
    steps = [step for step in job["steps"] if "name" in step]
    assert len(steps) == 2
    for step in steps:
        kept = [line for line in step["run"].splitlines() if " -m venv " not in line and "bin/pip" not in line]
        text = "\n".join(kept).replace("${{ inputs.old }}", "2.13.0").replace("${{ inputs.new }}", "2.15.0")
        ran = run(text, tmp_path, shell)
        assert ran.returncode == 0, ran.stderr
    assert "2.15.0+cu130" in (tmp_path / "summary.md").read_text()


def shown() -> list[tuple[str, str]]:
    """Each command in running text or in a console block, with its page."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found += [(page.name, line) for line in INLINE.findall(text)]
        for kind, block in BLOCK.findall(text):
            if kind == "console":
                found += [(page.name, part.strip()) for command in commands(block) for part in command.split("&&")]
    return [(page, command) for page, command in found if command.startswith(("replaydrift ", "nox "))]


@pytest.mark.parametrize(("page", "command"), shown())
def test_words_and_options_are_there(page: str, command: str) -> None:
    """A command that a page shows names a command, a session, and options that there are."""
    words = shlex.split(command.partition(" > ")[0])
    if words[0] == "nox":
        sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE))
        named = [word for before, word in pairwise(words) if before == "-s"]
        assert {name.partition("(")[0] for name in named} <= sessions
        assert named or words[1:] == ["-l"]
        if named != ["check"]:
            return
        words = ["replaydrift", "check", *words[words.index("--") + 1 :]]
    node: click.Command = cli
    for word in words[1:]:
        context = click.Context(node, info_name=node.name)
        if isinstance(node, click.Group) and not word.startswith("-"):
            found = node.get_command(context, word)
            assert found is not None, f"{page} shows {command!r}"
            node = found
        elif word.startswith("-"):
            options = {name for option in node.get_params(context) for name in option.opts}
            assert word.partition("=")[0] in options, f"{page} shows {command!r}"
