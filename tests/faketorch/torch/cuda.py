"""A GPU that is there unless FAKE_TORCH_GPU is empty."""

from __future__ import annotations

import os
import time
import types

initialised_in: list[int] = []


def init() -> None:
    if not os.environ.get("FAKE_TORCH_GPU", "NVIDIA Fake H200"):
        raise RuntimeError("Found no NVIDIA driver on your system.")
    initialised_in.append(os.getpid())


def get_device_properties(_device: int) -> types.SimpleNamespace:
    name = os.environ.get("FAKE_TORCH_GPU", "NVIDIA Fake H200")
    return types.SimpleNamespace(name=name, major=9, minor=0, total_memory=2**37, multi_processor_count=132)


class CUDAGraph:
    def capture_begin(self, pool: object = None) -> None:
        pass

    def capture_end(self) -> None:
        time.sleep(0.01)


def _is_in_bad_fork() -> bool:
    return bool(initialised_in) and initialised_in[0] != os.getpid()
