"""The store: what is written can be read, reviewed and never silently mixed."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from making import attempt, environment, record

from replaydrift import files
from replaydrift.errors import StoreError
from replaydrift.files import to_text, write_whole
from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, Raised, Warned
from replaydrift.store import Store
from replaydrift.strip import MISSING, Cell

RICH = Attempt(
    outcome=Outcome.parse("raised:E: a: b"),
    strip=(Cell("warmup", {"float": "nan"}, {"float": "inf"}), Cell("replay", [1, [2.5]], MISSING), Cell("replay", MISSING, None)),
    evidence=(("address", {"x": "+0x0"}), ("note", "text")),
    warnings=(Warned("UserWarning", "old", 3),),
    chain=(Raised("E", "a: b\nmore", "cases/x.py:3"), Raised("F", "cause")),
    stdout="out",
    stderr="err",
    duration_ms=1.25,
    capture_ms=0.5,
    rules=("pageable-refused",),
)


def test_round_trip(store: Store) -> None:
    """Everything an attempt holds, NaN and missing cells included, is read as it was written."""
    cases = [record(RICH, case="g/bug", options={"elements": 8}, tolerance=1e-3, timing=True), record("correct", case="g/fix", kind="fix")]
    store.write(environment(note="told"), cases)
    sweep = store.read("h200", "2.13.0+cu130")
    assert sweep.cases == {case.case: case for case in cases}
    assert sweep.environment == environment(note="told")


def test_writing_again_changes_no_byte(store: Store) -> None:
    """The same results give the same bytes, so that a diff shows only what changed."""
    files = store.write(environment(), [record(RICH)])
    before = [path.read_bytes() for path in files]
    store.write(environment(), [record(RICH)])
    assert [path.read_bytes() for path in files] == before


def test_a_cell_is_a_line(store: Store) -> None:
    """A person reviews a strip line by line, and the file is strict JSON."""
    text = store.write(environment(), [record(attempt("wrong", 3, 1))])[0].read_text()
    assert text.count('{"correct": 1, "observed": 3, "step": "replay"}') == 3
    assert json.loads(text, parse_constant=lambda token: pytest.fail(f"{token} is no strict JSON"))["schema"] == 1
    assert max(map(len, text.splitlines())) <= 120


def test_some_cases_join_those_already_there(store: Store) -> None:
    """Running one case again keeps the others of its group."""
    store.write(environment(), [record("wrong", case="g/a"), record("wrong", case="g/b")])
    store.write(environment(), [record("correct", case="g/b")])
    cases = store.read("h200", "2.13.0+cu130").cases
    assert {name: case.attempts[0].outcome.text for name, case in cases.items()} == {"g/a": "wrong", "g/b": "correct"}


def test_another_gpu_is_refused(store: Store) -> None:
    """One machine's folder holds one GPU and one engine; nothing is changed by the attempt to mix them."""
    store.write(environment(), [record("wrong")])
    for other in (environment("2.14.1+cu130", gpu="NVIDIA B200"), environment("2.14.1+cu130", engine="model")):
        with pytest.raises(StoreError, match=r"holds results of engine 'cuda' on 'NVIDIA H200'.*--machine NAME"):
            store.write(other, [record("wrong")])
    assert store.releases("h200") == ("2.13.0+cu130",)


def test_old_records_never_get_a_new_environment(store: Store) -> None:
    """A record stays under the environment it was made in: with another driver, all cases of the release must run again."""
    store.write(environment(), [record("wrong", case="g/a"), record("wrong", case="g/b")])
    newer = environment(gpu="NVIDIA H200", torch={"version": "2.13.0+cu130", "git": "other"})
    with pytest.raises(StoreError, match=r"1 case\(s\), such as 'g/b', from an environment that differs in torch"):
        store.write(newer, [record("correct", case="g/a")])
    store.write(newer, [record("correct", case="g/a"), record("correct", case="g/b")])
    assert store.read("h200", "2.13.0+cu130").environment == newer


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.json", '{"schema": 1, "cases"', "cannot be read as JSON"),
        ("g.json", "[]", "none of replaydrift's files"),
        ("g.json", '{"schema": 99}', "has schema 99, but this replaydrift knows 1 to 1"),
        ("g.json", '{"schema": 1, "group": "g"}', "is no group of verdicts"),
        ("other.json", None, "belongs elsewhere"),
        ("_environment.json", '{"schema": 1}', "is no environment"),
        ("_environment.json", '{"schema": 1, "machine": "h200", "engine": "cuda", "release": "2.13.0+cu130", "facts": []}', "is no environment"),
        ("g.json", '{"schema": true, "group": "g"}', "none of replaydrift's files"),
        ("g.json", "[" * 100_000, "cannot be read as JSON"),
        ("g.json", '{"schema": 1, "group": NaN}', "NaN is no JSON"),
    ],
)
def test_damaged_and_foreign_files(store: Store, name: str, content: str | None, message: str) -> None:
    """A file that is cut off, foreign, too new or misplaced is named with what to do, and is left as it is."""
    written = store.write(environment(), [record("wrong", case="g/bug")])
    path = written[0].with_name(name)
    path.write_text(written[0].read_text() if content is None else content)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message) as error:
        store.read("h200", "2.13.0+cu130")
    assert str(path) in str(error.value)
    assert path.read_bytes() == before


def test_unknown_outcome_in_a_file(store: Store) -> None:
    """An outcome outside the closed set makes the file damaged; it is never read as something else."""
    path = store.write(environment(), [record("wrong", case="g/bug")])[0]
    path.write_text(path.read_text().replace('"wrong"', '"puzzling"'))
    with pytest.raises(StoreError, match="'puzzling' is no outcome"):
        store.read("h200", "2.13.0+cu130")


def test_unknown_kind_in_a_file(store: Store) -> None:
    """A kind that is none makes the file damaged: no verdict can be read from it."""
    path = store.write(environment(), [record("wrong", case="g/bug")])[0]
    path.write_text(path.read_text().replace('"kind": "bug"', '"kind": "odd"'))
    with pytest.raises(StoreError, match="unknown kind 'odd': expected one of bug, fix, behaviour"):
        store.read("h200", "2.13.0+cu130")


def test_a_file_that_may_not_be_read_is_not_called_damaged(store: Store) -> None:
    """Nobody is told to delete a good file: what the system refuses is said in the system's words."""
    path = store.write(environment(), [record("wrong", case="g/bug")])[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be read: Is a directory; give the right to read it"):
        store.read("h200", "2.13.0+cu130")


def test_verdicts_without_their_environment_do_not_vanish(store: Store) -> None:
    """A release whose environment is lost is named, not left out; while its journal is there the first sweep is not over."""
    folder = store.write(environment(), [record("wrong", case="g/bug")])[0].parent
    (folder / "_environment.json").unlink()
    with pytest.raises(StoreError, match=r"2.13.0\+cu130' holds verdicts but no _environment.json: restore that file"):
        store.machines()
    (folder / ".journal.jsonl").touch()
    assert store.machines() == ()


def test_a_folder_that_is_no_release_is_named(store: Store) -> None:
    """The error is about the folder in the store, not about the release that a person asked for."""
    folder = store.write(environment(), [record("wrong")])[0].parent
    folder.rename(folder.with_name("copy of 2.13"))
    with pytest.raises(StoreError, match="h200/copy of 2.13' is no folder of a torch release.*move it out of the store"):
        store.releases("h200")


@pytest.mark.parametrize("name", ["a/b", "..", "", ".hidden", "x" * 65, "a b", "-x"])
def test_machine_names(store: Store, name: str) -> None:
    """What cannot be a folder's name cannot be a machine's."""
    with pytest.raises(StoreError, match="cannot name a machine"):
        store.folder(name, "2.13.0")


def test_which_machine(store: Store) -> None:
    """With one machine there is no need to say which; with several, or none, the error lists them."""
    with pytest.raises(StoreError, match="has no results yet: run `nox -s matrix` first"):
        store.machine(None)
    store.write(environment(), [record("wrong")])
    assert store.machine(None) == "h200"
    store.write(environment(machine="model", gpu="model", engine="model"), [record("wrong")])
    with pytest.raises(StoreError, match=r"2 machines \(h200, model\): say which with --machine NAME"):
        store.machine(None)
    with pytest.raises(StoreError, match="no results of machine 'b200'.*machines there are h200, model"):
        store.machine("b200")


def test_unknown_release(store: Store) -> None:
    """A release without results is refused with those that have some."""
    store.write(environment(), [record("wrong")])
    with pytest.raises(StoreError, match=r"no results of '2.99.0' on machine 'h200': releases there are 2.13.0\+cu130"):
        store.read("h200", "2.99.0")


def test_no_permission_and_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails leaves the old file whole and no scratch file behind, and says what to do."""
    path = write_whole(tmp_path / "a.json", "old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(StoreError, match=r"No space left on device; what was there is unchanged.*--resume"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]
    with pytest.raises(StoreError, match="cannot write"):
        write_whole(path / "below-a-file" / "b.json", "new")


def test_text_is_sorted_and_ends_in_a_line_break() -> None:
    """Keys are sorted at every depth; text is kept as people write it."""
    assert to_text({"b": 1, "a": {"d": "é"}}) == '{"a": {"d": "é"}, "b": 1}\n'
    assert to_text({"b": [[[1]]], "a": 1}) == '{\n "a": 1,\n "b": [\n  [[1]]\n ]\n}\n'
