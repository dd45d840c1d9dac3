"""The journal loses at most what was being written, and refuses what is not its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from replaydrift.errors import RunError
from replaydrift.journal import FILE_NAME, Journal

HEADER = {"release": "2.13.0", "attempts": 3, "cases": {"group/bug": {"version": "a1"}}}


def filled(folder: Path, count: int = 3) -> Path:
    """The file of a journal with so many reports."""
    with Journal(folder, HEADER) as journal:
        for number in range(count):
            journal.add("group/bug", number, {"how": "finished", "values": [["replay", number]]})
    return folder / FILE_NAME


def test_reports_come_back(tmp_path: Path) -> None:
    """What was added is there when the sweep goes on."""
    filled(tmp_path)
    with Journal(tmp_path, HEADER, resume=True) as journal:
        assert sorted(journal.reports) == [("group/bug", 0), ("group/bug", 1), ("group/bug", 2)]
        assert journal.reports["group/bug", 2]["values"] == [["replay", 2]]


def test_every_cut_is_tolerated(tmp_path: Path) -> None:
    """A file cut off at any byte gives the reports written whole before it, and can be added to."""
    whole = filled(tmp_path / "whole").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole), 7):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(whole[:cut])
        with Journal(folder, HEADER, resume=True) as journal:
            assert len(journal.reports) == whole[first:cut].count(b"\n")
            journal.add("group/bug", 9, {"how": "finished"})
        with Journal(folder, HEADER, resume=True) as journal:
            assert ("group/bug", 9) in journal.reports


def test_a_cut_header_begins_again(tmp_path: Path) -> None:
    """A kill while the first line was written leaves nothing to lose."""
    (tmp_path / FILE_NAME).write_bytes(b'{"schema": 1, "rel')
    with Journal(tmp_path, HEADER) as journal:
        assert journal.reports == {}
        journal.add("group/bug", 1, {"how": "finished"})
    with Journal(tmp_path, HEADER, resume=True) as journal:
        assert len(journal.reports) == 1


def test_a_journal_in_the_way(tmp_path: Path) -> None:
    """Without --resume or --fresh a sweep that did not end is neither lost nor continued."""
    filled(tmp_path)
    with pytest.raises(RunError, match="holds 3 attempts of a sweep that did not end: go on with --resume, or discard them with --fresh"):
        Journal(tmp_path, HEADER)
    with Journal(tmp_path, HEADER, fresh=True) as journal:
        assert journal.reports == {}


def test_another_header_is_refused(tmp_path: Path) -> None:
    """A sweep of other code or another environment does not go on from this one, and the message says what differs."""
    path = filled(tmp_path)
    before = path.read_bytes()
    other = HEADER | {"cases": {"group/bug": {"version": "b2"}}}
    with pytest.raises(RunError, match=r"differs in cases \(cases.group/bug.version: a1 then, b2 now\).*--fresh"):
        Journal(tmp_path, other, resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b'{"my": "notes"}\n', b"[1]\n", b'{"schema": 1}\n{"foreign": 1}\n', b"not json\n{}\n"])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file of that name that is none of ours is named and left as it is."""
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(RunError, match="journal.jsonl"):
        Journal(tmp_path, HEADER, resume=True)
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_one_at_a_time(tmp_path: Path) -> None:
    """A second run into the same folder is refused while the first goes on."""
    with Journal(tmp_path, HEADER), pytest.raises(RunError, match="another run is writing"):
        Journal(tmp_path, HEADER, resume=True)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is full the error says so, and what was kept before is whole."""
    filled(tmp_path)

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path, HEADER, resume=True) as journal:
        real = os.write
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(RunError, match="No space left on device; the 3 attempts before are kept. Make room"):
            journal.add("group/bug", 7, {"how": "finished"})
        monkeypatch.undo()
    with Journal(tmp_path, HEADER, resume=True) as journal:
        assert len(journal.reports) == 3


def test_no_place_to_write(tmp_path: Path) -> None:
    """A folder that cannot be made is named, with what to do."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot write in .*--results DIR"):
        Journal(tmp_path / "file" / "deeper", HEADER)


def test_an_empty_journal_leaves_no_trace(tmp_path: Path) -> None:
    """A sweep that ended before its first attempt leaves neither file nor folder."""
    with Journal(tmp_path / "machine" / "release", HEADER):
        pass
    assert list(tmp_path.iterdir()) == []
