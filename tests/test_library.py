"""The library: cases found in files, with kinds, references and versions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from replaydrift.case_version import code_version
from replaydrift.errors import LibraryError
from replaydrift.library import kind_of, read_group, read_library, reference_of

FILE = '''"""A chapter.

Mechanism: frozen choice
"""

import torch

SIZE = 4


def _helper(x):
    """Doubles."""
    return x * SIZE  # in place?


def eager():
    yield "replay", 1


def lr_eager():
    yield "replay", 2


def bug(elements=8):
    """Wrong on replay.

    More.
    """
    yield "replay", _helper(torch.ones(elements))


def lr_fix():
    """Right."""
    yield "replay", 2
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one group file."""
    (tmp_path / "my_group.py").write_text(FILE)
    return tmp_path


def test_cases_of_a_file(folder: Path) -> None:
    """Public functions are cases in file order, underscores turn into dashes, references are none."""
    first, second = read_library(folder).cases
    assert (first.name, first.kind, first.reference, first.summary) == ("my-group/bug", "bug", "eager", "Wrong on replay.")
    assert first.options == {"elements"}
    assert (second.name, second.kind, second.reference) == ("my-group/lr-fix", "fix", "lr_eager")
    assert read_group(folder / "my_group.py").field("Mechanism") == "frozen choice"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("bug", "bug"),
        ("lr_bug", "bug"),
        ("bug_pinned", "bug"),
        ("fix_where", "fix"),
        ("workaround_top_level", "fix"),
        ("control", "behaviour"),
        ("debug", "behaviour"),
        ("prefix", "behaviour"),
    ],
)
def test_kind_is_a_word_of_the_name(function: str, kind: str) -> None:
    """A whole word of the name says the kind; a word that only contains it does not."""
    assert kind_of(function) == kind


@pytest.mark.parametrize(
    ("function", "references", "chosen"),
    [
        ("grad_scaler_fix", ["eager", "grad_scaler_eager", "grad_eager"], "grad_scaler_eager"),
        ("fix_pad", ["eager", "fix_pad_eager"], "fix_pad_eager"),
        ("bug", ["eager", "lr_eager"], "eager"),
        ("lrx_bug", ["eager", "lr_eager"], "eager"),
        ("bug", ["lr_eager"], None),
    ],
)
def test_longest_prefix_wins(function: str, references: list[str], chosen: str | None) -> None:
    """A case takes the reference with the longest prefix of its own name, in whole words, else `eager`."""
    assert reference_of(function, references) == chosen


def version(source: str, *roots: str) -> str:
    """The version of the functions named."""
    return code_version(source, ast.parse(source), roots)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("# in place?", "# or not", False),
        ('"""Doubles."""', '"""Multiplies."""', False),
        ("Wrong on replay.", "Wrong.", False),
        ("A chapter.", "Another.", False),
        ("\n\n\ndef lr_fix", "\n\n\n\n\ndef lr_fix", False),
        ('yield "replay", 2\n\n\ndef bug', 'yield "replay", 3\n\n\ndef bug', False),
        ("SIZE = 4", "SIZE = 5", True),
        ("x * SIZE", "x + SIZE", True),
        ('yield "replay", 1', 'yield "replay", 7', True),
        ("elements=8", "elements=9", True),
        ("import torch\n", "import torch as t\n", True),
    ],
)
def test_version_follows_the_code_in_use(old: str, new: str, changes: bool) -> None:
    """The version changes with the case, its helpers, constants, imports and reference, and with nothing else."""
    assert old in FILE
    assert (version(FILE, "bug", "eager") != version(FILE.replace(old, new), "bug", "eager")) is changes


def test_version_is_the_same_on_every_python() -> None:
    """The hash is over the text, so no Python release prints it otherwise; 3.10 to 3.13 give this value."""
    assert version("def bug():\n    yield 'replay', f'{1:>3}'\n", "bug") == "b930db4783f0"


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("a.py", "def bug(:\n", "cannot be read as Python"),
        ("a.py", "x = 1\n", "no case: expected a public function"),
        ("a.py", "def bug():\n    yield 'replay', 1\n", "`bug` has no reference"),
        ("a.py", "def eager():\n    yield 1\n\ndef bug():\n    return 1\n", "`bug` yields nothing"),
        ("a.py", "def eager():\n    yield 1\n\nasync def bug():\n    yield 1\n", "`bug` is asynchronous"),
        ("a.py", "def eager():\n    yield 1\n\ndef bug(x):\n    yield 1\n", "`bug` needs arguments"),
        ("a.py", "def eager():\n    yield 1\n\ndef bug():\n    def inner():\n        yield 1\n    return inner\n", "`bug` yields nothing"),
    ],
)
def test_broken_rules(tmp_path: Path, name: str, source: str, message: str) -> None:
    """A file that breaks a rule is named with the line and what is expected."""
    (tmp_path / name).write_text(source)
    with pytest.raises(LibraryError, match=message) as error:
        read_library(tmp_path)
    assert str(tmp_path / name) in str(error.value)


def test_all_broken_files_at_once(tmp_path: Path) -> None:
    """A person mends all files in one go: every broken rule is listed."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n")
    with pytest.raises(LibraryError) as error:
        read_library(tmp_path)
    assert len(str(error.value).splitlines()) == 2


def test_select(folder: Path) -> None:
    """Groups and shell patterns select; a pattern that matches nothing is an error with the nearest names."""
    library = read_library(folder)
    assert [case.name for case in library.select(["*/bug"])] == ["my-group/bug"]
    assert len(library.select(["my-group"])) == len(library.select()) == 2
    with pytest.raises(LibraryError, match="no case matches 'my-group/bgu'.*did you mean 'my-group/bug'"):
        library.select(["my-group/bgu"])


def test_no_folder(tmp_path: Path) -> None:
    """A folder that is not there, or holds no case, is an error that says how to name one."""
    with pytest.raises(LibraryError, match="--cases-dir DIR"):
        read_library(tmp_path / "none")
    with pytest.raises(LibraryError, match="holds no case file"):
        read_library(tmp_path)


def test_two_files_of_one_group(tmp_path: Path) -> None:
    """`a_b.py` and `a-b.py` would be one group with every case twice: both are named."""
    for name in ("a_b.py", "a-b.py"):
        (tmp_path / name).write_text('def eager():\n    yield "replay", 1\n\n\ndef bug():\n    yield "replay", 2\n')
    with pytest.raises(LibraryError, match="the group 'a-b' is .*a-b.py already: rename one of the two files"):
        read_library(tmp_path)


@pytest.mark.parametrize("character", ["\f", "\x1c", "\u2028", "\x85"])
def test_what_ends_no_line_of_python_hides_no_edit(character: str) -> None:
    """A form feed in a docstring moves no line, so that an edit below it still changes the version."""
    source = FILE.replace("A chapter.", f"A chap{character}ter.")
    assert version(source, "bug", "eager") == version(FILE, "bug", "eager")
    assert version(source.replace("SIZE = 4", "SIZE = 5"), "bug", "eager") != version(source, "bug", "eager")
