"""The state of the GPU: what is read of an NVML in Python, and many readings as one."""

# ruff: noqa: N802, N815 - NVML's names

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from replaydrift.measuring import gpu
from replaydrift.measuring.gpu import Reading, reasons_in, summary


class Nvml:
    """NVML with one GPU, known by its name; functions of newer releases may be missing."""

    nvmlInit_v2 = staticmethod(lambda: 0)

    def __init__(self, name: str, devices: int = 1, *, old: bool = False) -> None:
        self._name, self._devices = name, devices
        reasons = "nvmlDeviceGetCurrentClocksThrottleReasons" if old else "nvmlDeviceGetCurrentClocksEventReasons"
        setattr(self, reasons, lambda _device, bits: self._set(bits, 0x1 | 0x4))

    @staticmethod
    def _set(place: Any, value: int) -> int:
        place._obj.value = value
        return 0

    def nvmlDeviceGetHandleByUUID(self, name: bytes, device: Any) -> int:
        """The handle of the GPU of this name."""
        return self._set(device, 7) if name.decode() == self._name else 6

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        """How many GPUs there are."""
        return self._set(count, self._devices)

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:
        """The handle of the GPU with this number."""
        return self._set(device, 7 + index)

    def nvmlDeviceGetClockInfo(self, device: Any, kind: Any, clock: Any) -> int:
        """The SM clock."""
        assert (device.value, kind.value) == (7, 1)
        return self._set(clock, 1980)

    def nvmlDeviceGetTemperature(self, _device: Any, _sensor: Any, _degrees: Any) -> int:
        """Not supported here."""
        return 3


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A torch whose device has a name."""
    cuda = SimpleNamespace(current_device=lambda: 0, get_device_properties=lambda _number: SimpleNamespace(uuid="12345678-aaaa"))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    gpu._device.cache_clear()
    yield
    gpu._device.cache_clear()


def with_nvml(monkeypatch: pytest.MonkeyPatch, nvml: Nvml) -> None:
    """Put this NVML in the place of the driver's."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: nvml)


@pytest.mark.parametrize("old", [False, True])
def test_a_reading_is_that_of_torchs_device(monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    """It is found by its name among others; what NVML does not say is None, and drivers before the renaming are understood."""
    with_nvml(monkeypatch, Nvml("GPU-12345678-aaaa", devices=8, old=old))

    assert gpu.read() == Reading(1980, None, ("power cap",))


def test_a_gpu_alone_needs_no_name_and_one_of_several_is_never_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a GPU has a name that NVML may not know."""
    with_nvml(monkeypatch, Nvml("GPU-other"))
    assert gpu.read() == Reading(1980, None, ("power cap",))

    gpu._device.cache_clear()
    with_nvml(monkeypatch, Nvml("GPU-other", devices=2))
    assert gpu.read() is None


def test_without_nvml_there_is_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library is no error."""

    def missing(_name: str) -> None:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)

    assert gpu.read() is None


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
