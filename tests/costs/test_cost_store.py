"""The store of costs: what is written can be read, reviewed and never silently mixed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from making import environment, record
from synthetic_costs import NEW, OLD, block, costs, subject, visit

from replaydrift import frames
from replaydrift.costs.cost_store import CostStore
from replaydrift.errors import StoreError
from replaydrift.store import Store

BLOCK = "20261201-0900-upgrade"


@pytest.fixture
def store(tmp_path: Path) -> CostStore:
    """A store that holds two releases of a block of four visits, one of them still to be made."""
    store = CostStore(tmp_path)
    four = block(OLD, NEW, NEW, OLD)
    made = {"chain_1000": subject(replay_gpu_us=[1.25] * 30, nodes=1000)}
    store.write(costs(OLD, visit(1, **made), of=four))
    store.write(costs(NEW, visit(2, **made), visit(3, **made), of=four))
    return store


def test_what_is_written_is_read(store: CostStore) -> None:
    """A block is read with all its releases, oldest first."""
    assert [one.environment.release for one in store.read_block("h200", BLOCK)] == [OLD, NEW]
    assert list(store.everything()) == list(store.read_block("h200", BLOCK))
    assert (store.machines(), store.blocks("h200"), store.releases("h200", BLOCK)) == (("h200",), (BLOCK,), (OLD, NEW))


def test_the_samples_of_a_metric_are_a_line(store: CostStore) -> None:
    """A block is reviewed metric by metric, however many samples there are."""
    path = store.path("h200", BLOCK, OLD)
    assert f'"replay_gpu_us": [{", ".join(["1.25"] * 30)}]' in path.read_text()
    before = path.read_bytes()
    store.write(store.read("h200", BLOCK, OLD))
    assert path.read_bytes() == before


def test_a_block_that_is_not_finished_says_what_is_missing(store: CostStore) -> None:
    """The newest block for a comparison is one that is finished."""
    assert store.unfinished("h200", BLOCK) == (4,)
    assert store.newest("h200", OLD, NEW) is None
    early = store.read("h200", BLOCK, OLD)
    store.write(costs(OLD, *early.visits, visit(4), of=early.block))
    assert store.unfinished("h200", BLOCK) == ()
    assert store.newest("h200", OLD, NEW) == BLOCK
    assert store.newest("h200", OLD, "2.14.1+cu130") is None


def test_times_of_the_model_are_refused(tmp_path: Path) -> None:
    """Its virtual clock is no clock; counts are counts."""
    model = environment(OLD, "model", "the model", "model")
    store = CostStore(tmp_path)
    store.write(costs(OLD, visit(1, chain_10=subject(nodes=10)), where=model))
    with pytest.raises(StoreError, match="'capture_ms' of the CPU model is no cost"):
        store.write(costs(OLD, visit(1, chain_10=subject(nodes=10, capture_ms=1.5)), where=model))


def test_a_metric_that_has_no_row_is_refused(tmp_path: Path) -> None:
    """A number whose unit and margin nobody wrote down is not stored."""
    with pytest.raises(StoreError, match="no metric 'speed'"):
        CostStore(tmp_path).write(costs(OLD, visit(1, chain_10=subject(speed=1))))


def test_one_machine_is_one_place(store: CostStore) -> None:
    """Another GPU under the same name is refused, whether verdicts or costs are there."""
    with pytest.raises(StoreError, match=r"holds costs of engine 'cuda' on 'NVIDIA H200'"):
        store.write(costs(OLD, where=environment(OLD, gpu="NVIDIA A100"), of=block(OLD, name="other")))
    Store(store.root).write(environment(OLD, "a100", "NVIDIA A100"), [record("correct")])
    with pytest.raises(StoreError, match=r"holds results of engine 'cuda' on 'NVIDIA A100'"):
        store.write(costs(OLD, where=environment(OLD, "a100"), of=block(OLD, name="other")))


def test_files_of_two_blocks_are_not_taken_for_one(store: CostStore) -> None:
    """A file copied among those of another block is found."""
    store.write(costs(NEW, of=block(OLD, NEW, NEW, OLD, OLD)))
    with pytest.raises(StoreError, match="mixes two blocks"):
        store.read_block("h200", BLOCK)


def test_a_file_in_the_wrong_place_is_found(store: CostStore) -> None:
    """The content says where a file belongs."""
    store.path("h200", BLOCK, OLD).rename(store.path("h200", BLOCK, "2.14.1+cu130"))
    with pytest.raises(StoreError, match="belongs elsewhere"):
        store.read("h200", BLOCK, "2.14.1+cu130")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 1, "block"', "cut off or damaged"),
        ("[]", "none of replaydrift's files"),
        ('{"schema": 2}', "upgrade replaydrift"),
        ('{"schema": 1}', "holds no costs"),
        ('{"schema": 1, "block": {"name": "b", "purpose": "aa", "order": []}, "environment": {}, "visits": []}', "holds no costs"),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(store: CostStore, text: str, words: str) -> None:
    """Cut off, foreign, newer or wrong inside: the error names the file."""
    path = store.path("h200", BLOCK, OLD)
    path.write_text(text)
    with pytest.raises(StoreError, match=words) as caught:
        store.read("h200", BLOCK, OLD)
    assert str(path) in str(caught.value)


def test_a_full_disk_leaves_what_was_there(store: CostStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing partial is left behind, and the visits before stay."""
    before = store.path("h200", BLOCK, OLD).read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        store.write(costs(OLD))
    assert store.path("h200", BLOCK, OLD).read_bytes() == before
    assert len(list(store.folder("h200", BLOCK).iterdir())) == 2


def test_what_is_not_there_is_answered_with_what_is(store: CostStore) -> None:
    """A wrong release or block lists those there are; a name that can be no folder is refused."""
    with pytest.raises(StoreError, match=r"releases there are 2\.13\.0\+cu130, 2\.15\.0\+cu132"):
        store.read("h200", BLOCK, "2.14.1+cu130")
    with pytest.raises(StoreError, match=f"blocks are {BLOCK}"):
        store.read("h200", "none", OLD)
    with pytest.raises(StoreError, match="cannot name a block"):
        store.read("h200", "../x", OLD)
    assert CostStore(store.root / "empty").machines() == ()


def test_a_frame_has_a_row_a_sample(store: CostStore) -> None:
    """Every sample of every visit that counts, with where it was measured and what it is."""
    early = store.read("h200", BLOCK, OLD)
    store.write(costs(OLD, *early.visits, visit(4, "throttled", chain_1000=subject(nodes=7)), of=early.block))
    frame = frames.costs(store.root)
    times = frame[frame["metric"] == "replay_gpu_us"]

    assert len(frame) == 3 * (30 + 1)
    assert set(times["value"]) == {1.25}
    assert list(times.groupby(["release", "process"]).size()) == [30, 30, 30]
    assert (set(times["exact"]), set(times["headline"])) == ({False}, {True})
    assert set(frame[frame["metric"] == "nodes"]["exact"]) == {True}
    assert set(frame["gpu"]) == {"NVIDIA H200"}


def test_a_file_of_others_in_a_block_is_named(tmp_path: Path) -> None:
    """A file whose name is no release is an error with its folder, and moves nobody to delete a block."""
    folder = tmp_path / "costs" / "h200" / "one"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text("{}")
    with pytest.raises(StoreError, match=r"costs/h200/one' holds a file that is none of replaydrift's: .*move it out of the store"):
        CostStore(tmp_path).read_block("h200", "one")
