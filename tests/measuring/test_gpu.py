"""The state of the GPU: bits as NVML gives them, and many readings as one."""

from __future__ import annotations

from replaydrift.measuring.gpu import Reading, reasons_in, summary


def test_idleness_and_clocks_that_somebody_set_are_no_throttling() -> None:
    """Only what holds a clock down against the GPU's wish is a reason."""
    assert reasons_in(0x1 | 0x2 | 0x100) == ()
    assert reasons_in(0x1 | 0x4 | 0x40) == ("power cap", "hardware thermal slowdown")


def test_readings_add_up_to_median_clock_highest_temperature_and_every_reason() -> None:
    """A visit has one clock, one temperature, and the reasons of all its subjects."""
    readings = [Reading(1980, 40), Reading(1965, 47, ("power cap",)), Reading(1980, 45)]

    assert summary(readings) == {"sm_clock_mhz": 1980, "temperature_c": 47, "throttled": ["power cap"]}


def test_what_was_not_read_is_not_made_up() -> None:
    """Without NVML there is no clock and no temperature."""
    assert summary([None, Reading(None, None)]) == {"sm_clock_mhz": None, "temperature_c": None, "throttled": []}
