"""Agreement of the CPU model with GPU records."""

from __future__ import annotations

import pytest
from making import attempt, environment, record

from replaydrift.agreement import agreement_of
from replaydrift.records import CaseRecord
from replaydrift.store import Store


def agree(store: Store, gpu: CaseRecord, model: CaseRecord) -> dict[str, bool | None] | None:
    """The aspects of one case; None where it is left out."""
    store.write(environment("2.13.0+cu130"), [gpu])
    store.write(environment("2.13.0+cpu", machine="model", gpu="model", engine="model"), [model])
    found = agreement_of(store.sweeps())
    return dict(found[0].aspects) if found else None


@pytest.mark.parametrize(
    ("gpu", "model", "aspects"),
    [
        (record("wrong"), record("wrong"), (True, True, None, None)),
        (record("wrong"), record("correct"), (False, False, None, None)),
        (record(attempt("wrong", 3.0)), record(attempt("wrong", 3.0005)), (True, True, None, None)),
        (record(attempt("wrong", 3)), record(attempt("wrong", 4)), (True, False, None, None)),
        (record(attempt("wrong", 3), attempt("wrong", 4), attempt("wrong", 3)), record(attempt("wrong", 9)), (True, None, None, None)),
        (record("raised:E: a"), record("raised:E: b"), (True, True, True, None)),
        (record("raised:E: a"), record("raised:F: a"), (True, True, False, None)),
    ],
)
def test_aspects(store: Store, gpu: CaseRecord, model: CaseRecord, aspects: tuple[bool | None, ...]) -> None:
    """Outcome, strip within 1e-3, error classes and addresses are judged apart; what varies on the GPU itself is not judged."""
    assert tuple((agree(store, gpu, model) or {}).values()) == aspects


def test_addresses(store: Store) -> None:
    """The same blocks at the same offsets agree; another offset does not."""
    for offset, same in (("+0x200", True), ("+0x400", False)):
        gpu, model = (record(attempt("wrong")) for _ in range(2))
        ours = [
            type(a)(a.outcome, a.strip, (("address", {"x": "+0x0", "y": text}),))
            for a, text in ((gpu.attempts[0], "+0x200"), (model.attempts[0], offset))
        ]
        aspects = agree(store, record(ours[0]), record(ours[1]))
        assert aspects is not None
        assert aspects["addresses"] is same


def test_other_sizes_are_compared_by_which_addresses_coincide(store: Store) -> None:
    """A case that ran smaller on the model has other distances; the same tensors must share a block."""
    seen = [{"x": "+0x0", "y": "+0x40000000", "z": "+0x0"}, {"x": "+0x200", "y": "+0x0", "z": "+0x200"}, {"x": "+0x0", "y": "+0x0", "z": "+0x200"}]
    real, same, other = (type(a)(a.outcome, a.strip, (("address", where),)) for a, where in zip([attempt("wrong")] * 3, seen, strict=True))
    for ours, agrees in ((same, True), (other, False)):
        aspects = agree(store, record(real), record(ours, options={"elements": 4}))
        assert aspects is not None
        assert aspects["addresses"] is agrees


def test_what_differs_is_told_with_its_rates(store: Store) -> None:
    """Where a GPU's own attempts disagree, one outcome would not say why the model's differs."""
    store.write(environment("2.13.0+cu130"), [record("correct", "wrong", "correct")])
    store.write(environment("2.13.0+cpu", machine="model", gpu="model", engine="model"), [record("correct")])
    (found,) = agreement_of(store.sweeps())
    assert found.why == "outcome: correct 2 of 3, wrong 1 of 3 | model correct"


def test_what_cannot_be_held_side_by_side_is_left_out(store: Store) -> None:
    """A skipped case, or one of another version, counts neither way."""
    assert agree(store, record("wrong"), record("skipped:needs a CUDA compiler")) is None
    assert agree(store, record("wrong"), record("wrong", version="v2")) is None


def test_a_store_with_one_engine(store: Store) -> None:
    """Without GPU records there is no agreement to state."""
    store.write(environment("2.13.0+cpu", machine="model", gpu="model", engine="model"), [record("wrong")])
    assert agreement_of(store.sweeps()) == ()
