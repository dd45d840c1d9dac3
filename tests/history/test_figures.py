"""Numbers for asv: what each verdict becomes, and which times may be drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from making import attempt, environment, record

from replaydrift.history.figures import CODES, Figures, code, differs, figures_of
from replaydrift.verdicts import VERDICTS


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_has_a_number_asv_can_take(verdict: str) -> None:
    """A verdict is None, NaN or a finite number above 0, for nothing else survives `asv publish`."""
    for number in (code(Figures("v", verdict)), differs(Figures("v", verdict), "holds")):
        assert number is None or math.isnan(number) or math.isfinite(number)
    assert (verdict in CODES) != (verdict in {"skipped", "broken", "missing"})
    assert CODES.get(verdict, 1) > 0


def test_codes_are_distinct_and_rise_with_the_danger() -> None:
    """No two verdicts share a code; a fix that fails is drawn above one that raises, and that above one that holds."""
    assert len(set(CODES.values())) == len(CODES)
    assert CODES["holds"] < CODES["raises"] < CODES["fails"]


@pytest.mark.parametrize(
    ("verdict", "expected"), [("holds", 0), ("fails", 1), ("raises", 1), ("skipped", math.nan), ("flaky", math.nan), ("broken", None)],
)  # fmt: skip
def test_differs(verdict: str, expected: float | None) -> None:
    """Only a verdict that says something about torch can differ; a machine's fault is a failure, not a difference."""
    assert differs(Figures("v", verdict), "holds") == pytest.approx(expected, nan_ok=True)


def test_capture_time_is_the_median_of_attempts_that_ended() -> None:
    """Attempts that raised, or have no time, do not count towards the capture time."""
    times = [replace(attempt("correct"), capture_ms=time) for time in (1.0, 9.0, 2.0, None)]
    raised = replace(attempt("raised:E: x"), capture_ms=500.0)
    assert figures_of(record(*times, raised), environment()) == Figures("v1", "flaky", 2.0)


def test_times_of_the_model_are_never_costs() -> None:
    """The CPU model's clock is made up, so its times are not drawn."""
    timed = record(replace(attempt("correct"), capture_ms=5.0))
    assert figures_of(timed, environment(engine="cuda")).capture_ms == 5.0
    assert figures_of(timed, environment(engine="model", gpu="CPU model")).capture_ms is None
