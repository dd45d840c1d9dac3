"""Tests of environments: finished or not, what they weigh, and what is left when something is interrupted."""

from __future__ import annotations

import os

import pytest

from replaydrift import environments
from replaydrift.errors import ReplaydriftError

RECIPE = {"release": "2.14.1", "torch_index": None}


@pytest.fixture
def root(tmp_path):
    """A folder for environments; `begun` puts one into it."""
    return tmp_path / ".nox"


def begun(root, name):
    """An environment as its maker leaves it before anything is installed."""
    made = environments.open_environment(root, name)
    (made.folder / "bin").mkdir(parents=True)
    (made.folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    made.python.write_text("#!/bin/sh\n")
    made.python.chmod(0o755)
    return made


def test_an_environment_without_its_stamp_is_not_finished(root):
    """Making it may have been interrupted anywhere before the stamp: then it is made again."""
    begun(root, "torch-2.14.1")

    assert not environments.of_release(root, "2.14.1").is_made_from(RECIPE)


def test_a_finished_environment_is_taken_again_for_the_same_recipe_only(root):
    """The stamp keeps the recipe; what else it says does not matter, another recipe does."""
    begun(root, "torch-2.14.1").finish({**RECIPE, "torch": "2.14.1+cu130"})
    made = environments.of_release(root, "2.14.1")

    assert made.is_made_from(RECIPE)
    assert not made.is_made_from({**RECIPE, "torch_index": "/mnt/wheels"})
    assert (made.release, made.torch) == ("2.14.1", "2.14.1+cu130")


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_stamp_is_none(root, text):
    """A stamp that was cut off counts as none."""
    made = begun(root, "driver")
    (made.folder / environments.STAMP).write_text(text)

    assert environments.open_environment(root, "driver").recipe is None


def test_an_environment_whose_interpreter_is_gone_is_not_taken(root):
    """When the Python it was made with is removed, the link in it points nowhere."""
    made = begun(root, "driver").finish({})
    made.python.unlink()
    made.python.symlink_to("/usr/bin/python-that-was-removed")

    assert not made.is_made_from({})


def test_a_weight_counts_each_file_once(root):
    """Files with two names are on the disk once, and links weigh nothing of what they point to."""
    made = begun(root, "driver")
    before = made.weigh()
    large = made.folder / "large"
    large.write_bytes(os.urandom(200_000))
    os.link(large, made.folder / "again")
    (made.folder / "link").symlink_to(large)

    assert 200_000 <= made.weigh() - before <= 220_000


def test_removing_frees_what_it_weighed(root):
    """What is said to be freed is what was there, and nothing stays."""
    made = begun(root, "driver").finish({})
    weight = made.weigh()

    assert weight == made.remove()
    assert not made.folder.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove anything")
def test_what_cannot_be_removed_is_named(root):
    """Without the right to remove it, the folder is named and no longer counts as finished."""
    made = begun(root, "driver").finish({})
    (made.folder / "bin").chmod(0o500)
    try:
        with pytest.raises(ReplaydriftError, match="cannot remove"):
            made.remove()
    finally:
        (made.folder / "bin").chmod(0o700)

    assert environments.open_environment(root, "driver").recipe is None


def test_a_torch_is_found_by_what_it_prints(root):
    """A release is known to asv by its version: the environment asked for by version alone comes before one of another build."""
    begun(root, "torch-2.14.1+cu126").finish({"torch": "2.14.1+cu126"})
    begun(root, "torch-2.14.1").finish({"torch": "2.14.1+cu130"})
    begun(root, "torch-2.15.0")

    assert environments.of_torch(root, "2.14.1").name == "torch-2.14.1"
    assert environments.of_torch(root, "2.14.1+cu126").name == "torch-2.14.1+cu126"
    assert environments.of_torch(root, "2.15.0") is None


def test_only_environments_are_listed(root):
    """Other folders that nox keeps there are no environments."""
    begun(root, "driver")
    (root / ".cache").mkdir()

    assert [made.name for made in environments.existing(root)] == ["driver"]
    assert environments.existing(root / "none") == ()
