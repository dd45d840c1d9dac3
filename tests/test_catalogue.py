"""The catalogue: what people wrote beside the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydrift.catalogue import DEFAULT_LIMIT_S, read_catalogue
from replaydrift.errors import LibraryError
from replaydrift.library import read_library

FILE = '''"""About {0}.

Mechanism: async replay
Source: https://example.org
"""


def eager():
    yield "replay", 1


def bug(elements=4):
    """Wrong."""
    yield "replay", 1
'''
TOML = """
schema = 1
[sources.page]
title = "The page"
[groups.second]
title = "The second"
mechanism = "frozen pointer"
alone = true
[groups.second.cases.bug]
meaning = "Yours too."
tolerance = 0.001
model = { options = { elements = 2 }, scale = 8, timing = true }
claims = [{ source = "page", says = "wrong", observed = [1, 2] }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two groups; groups.toml speaks of the second."""
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(FILE.format(name))
    return tmp_path


def test_a_folder_without_notes(folder: Path) -> None:
    """Title, mechanism and meaning come from the chapter where nobody wrote them down."""
    catalogue = read_catalogue(read_library(folder))
    notes = catalogue.notes["first/bug"]
    assert (catalogue.groups["first"].title, notes.mechanism, notes.meaning) == ("About first", "async replay", "Wrong.")
    assert (notes.alone, notes.tolerance, notes.limit_s) == (False, 0.0, DEFAULT_LIMIT_S)


def test_notes(folder: Path) -> None:
    """What groups.toml says goes for the case, else for its group; it also gives the order of the report."""
    (folder / "groups.toml").write_text(TOML)
    catalogue = read_catalogue(read_library(folder))
    notes = catalogue.notes["second/bug"]
    assert [case.name for case in catalogue.cases] == ["second/bug", "first/bug"]
    assert (notes.alone, notes.tolerance, notes.meaning, notes.mechanism) == (True, 0.001, "Yours too.", "frozen pointer")
    assert (notes.model.options, notes.model.scale, notes.model.timing) == ({"elements": 2}, 8.0, True)
    assert notes.claims[0].observed == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", "schema 2: expected 1"),
        ("[groups.second]", "[groups.third]", "there is no file third.py"),
        ('"frozen pointer"', '"frozen hope"', "mechanism 'frozen hope'"),
        ("alone = true", "lonely = true", "unknown key 'lonely'"),
        ("cases.bug]", "cases.bgu]", "there is no function 'bgu'"),
        ("meaning =", "sense =", "unknown key 'sense'"),
        ("scale = 8", "size = 8", "model: unknown key 'size'"),
        ('source = "page"', 'source = "wiki"', "source 'wiki': expected one of page"),
        ('says = "wrong"', 'says = "odd"', "says 'odd'"),
        ("[sources.page]", "[sources.page", "cannot be read as TOML"),
    ],
)
def test_broken_notes(folder: Path, old: str, new: str, message: str) -> None:
    """An entry that breaks a rule is named with what is expected."""
    (folder / "groups.toml").write_text(TOML.replace(old, new))
    with pytest.raises(LibraryError, match=message):
        read_catalogue(read_library(folder))
