"""What state the GPU was in while costs were measured, from NVML by ctypes: SM clock, temperature, and what held its clock down.

Nothing is ever set. Without NVML, on a part of a GPU that it says nothing about, or on the CPU model there is no reading.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, Final

# Reasons that NVML gives for a clock below what was asked for. Idleness and clocks that somebody set are none.
REASONS: Final = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_SM_CLOCK: Final = 1
_CORE_TEMPERATURE: Final = 0


@dataclass(frozen=True)
class Reading:
    """One look at the GPU; None where NVML does not say."""

    sm_clock_mhz: int | None
    temperature_c: int | None
    throttled: tuple[str, ...] = ()


def read() -> Reading | None:
    """The state of torch's current device now; None where there is no NVML. Call it while the GPU works: an idle one clocks down."""
    found = _device()
    if found is None:
        return None
    nvml, device = found
    return Reading(
        _number(nvml, "nvmlDeviceGetClockInfo", device, ctypes.c_uint(_SM_CLOCK)),
        _number(nvml, "nvmlDeviceGetTemperature", device, ctypes.c_uint(_CORE_TEMPERATURE)),
        reasons_in(_throttling(nvml, device)),
    )


def reasons_in(bits: int) -> tuple[str, ...]:
    """The reasons for which a clock is held down, of NVML's bits."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def summary(readings: Iterable[Reading | None]) -> dict[str, Any]:
    """All readings of a visit as one: the median clock, the highest temperature, every reason that was seen."""
    seen = [reading for reading in readings if reading is not None]
    clocks = [reading.sm_clock_mhz for reading in seen if reading.sm_clock_mhz is not None]
    temperatures = [reading.temperature_c for reading in seen if reading.temperature_c is not None]
    return {
        "sm_clock_mhz": round(median(clocks)) if clocks else None,
        "temperature_c": max(temperatures, default=None),
        "throttled": sorted({reason for reading in seen for reason in reading.throttled}),
    }


def _throttling(nvml: Any, device: Any) -> int:
    bits = ctypes.c_ulonglong()
    for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):  # The older name is second.
        function = getattr(nvml, name, None)
        if function is not None and function(device, ctypes.byref(bits)) == 0:
            return bits.value
    return 0


def _number(nvml: Any, name: str, *arguments: Any) -> int | None:
    value = ctypes.c_uint()
    return value.value if getattr(nvml, name)(*arguments, ctypes.byref(value)) == 0 else None


@lru_cache(maxsize=1)
def _device() -> tuple[Any, Any] | None:
    """NVML and its handle of torch's current device."""
    import torch

    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    properties, device = torch.cuda.get_device_properties(torch.cuda.current_device()), ctypes.c_void_p()
    name = "GPU-" + str(getattr(properties, "uuid", "")).removeprefix("GPU-")
    if nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device)) == 0:
        return nvml, device
    count = ctypes.c_uint()
    alone = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 1
    return (nvml, device) if alone and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0 else None
