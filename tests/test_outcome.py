"""Outcomes and their one text form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydrift.outcome import DETAILS, Outcome, same_text

FORMS = [
    "correct",
    "wrong",
    "raised:RuntimeError: out of range",
    "raised:torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing",
    "raised:KeyError: 'a: b'",
    "crashed:SIGSEGV",
    "crashed:exit 3",
    "timed-out:60 s",
    "skipped:no CUDA compiler",
    "broken:the server died",
]


@pytest.mark.parametrize("text", FORMS)
def test_text_round_trip(text: str) -> None:
    """Every text form parses to an outcome that prints it again."""
    assert Outcome.parse(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Correct",
        "correct:",
        "correct:yes",
        "wrong:2",
        "raised",
        "raised:RuntimeError",
        "crashed",
        "skipped:",
        "fine",
    ],
)
def test_forms_that_are_none(text: str) -> None:
    """A text outside the closed set is refused with the text in the message."""
    with pytest.raises(ValueError, match="is no outcome"):
        Outcome.parse(text)


@given(st.sampled_from([kind for kind, detail in DETAILS.items() if detail]), st.text(min_size=1))
def test_any_detail_round_trips(kind: str, detail: str) -> None:
    """Whatever the detail says, colons and line breaks included, the text form is exact."""
    outcome = Outcome(kind, f"E: {detail}")
    assert Outcome.parse(outcome.text) == outcome


def test_raised_keeps_the_first_line() -> None:
    """CUDA errors carry advice in further lines; the outcome names the error alone."""
    assert (
        Outcome.raised("torch.AcceleratorError", "CUDA error: bad\nCompile with TORCH_USE_CUDA_DSA").text
        == "raised:torch.AcceleratorError: CUDA error: bad"
    )
    assert Outcome.raised("ValueError", "").text == "raised:ValueError: (no text)"


def test_signature_ignores_addresses() -> None:
    """Two runs of one error that differ in an address came to the same."""
    assert same_text("at 0x7f00aa10  of pool") == same_text("at 0x7fffbb20 of pool")
    assert Outcome.parse("raised:E: at 0x7f00aa10").signature == Outcome.parse("raised:E: at 0x7f00aa20").signature


def test_where_a_line_of_torch_stands_is_no_other_error() -> None:
    """An assertion of torch's C++ that moved in its file, or was built elsewhere, is the same; another file's is not."""
    old = 'use_count > 0 INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":2799, please report a bug.'
    new = 'use_count > 0 INTERNAL ASSERT FAILED at "/__w/pytorch/pytorch/c10/cuda/CUDACachingAllocator.cpp":3329, please report a bug.'
    assert same_text(old) == same_text(new)
    assert same_text(old) != same_text(new.replace("CUDACachingAllocator", "CUDAStream"))
    warning = "The CUDA Graph is empty. (Triggered internally at {}:147.)"
    assert same_text(warning.format("/pytorch/aten/CUDAGraph.cpp")) == same_text(warning.format("/__w/aten/CUDAGraph.cpp")[:-5] + "207.)")
    assert same_text(warning.format("a.cpp")) != same_text(warning.format("a.cpp").replace("empty", "full"))
    trace = 'overwritten. Stack trace: File "compiled.py", line {}, in {} return x'
    assert same_text(trace.format(40, "_double")) == same_text(trace.format(92, "<lambda>"))
    assert same_text(trace.format(40, "_double")) != same_text(trace.format(40, "_double").replace("compiled", "other"))
    assert same_text('"my/file.py":3') != same_text('"my/file.py":4')
