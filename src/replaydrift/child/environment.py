"""Where attempts run: releases of torch and its libraries, the GPU, the driver, and the variables that steer them.

Only what stays the same from run to run belongs here (no temperatures, dates or pids): two runs are compared by it.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import platform
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

# A first touch of CUDA loads a driver and may compile: minutes on a slow file system.
_PATIENCE_S: Final = 300.0
# Optimizers, GradScaler, make_graphed_callables and deterministic algorithms import it when they are first used: half a second to
# five, an attempt.
_PRELOADED: Final = ("torch._dynamo",)
_VARIABLES: Final = re.compile(r"(PYTORCH_|CUDA_|CUBLAS|NCCL_|TORCH)\w*|OMP_NUM_THREADS")
# Variables that only say where things lie, or which of the machine's equal GPUs to take, change nothing that a case shows.
_PLACES: Final = re.compile(r"\w*(_HOME|_PATH|_DIR|_DIRECTORY|_ROOT|_FILE)|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER")


class UnavailableError(Exception):
    """The engine asked for cannot run here; the text says why and what to do."""


def gather_apart(engine: str) -> dict[str, Any]:
    """The facts of this process's torch and of its GPU, gathered in a process of its own. Without a GPU there is no `gpu` in them.

    UnavailableError where the engine is `cuda` and there is no device.
    """
    answer = _apart(lambda: _gather(want_gpu=engine != "model"))
    why = answer.pop("why_no_gpu", None)
    if engine == "cuda" and "gpu" not in answer:
        raise UnavailableError(f"engine 'cuda' was asked for, but there is no CUDA device: {why}. Or run on the CPU model: --engine model")
    return answer


def preload() -> bool:
    """Import what many cases import on their way, once instead of in every process; False where that spoilt all forks.

    Should a release touch CUDA when it imports this, no fork could use CUDA any more: the caller then begins anew without it.
    """
    for module in _PRELOADED:
        with suppress(Exception):  # A case that needs it will say what is wrong with it.
            importlib.import_module(module)
    return not _forks_are_spoilt()


def _forks_are_spoilt() -> bool:
    """True where something in this process touched CUDA, so that torch refuses CUDA in every process forked from it."""
    torch = sys.modules["torch"]
    refuses = getattr(torch.cuda, "_is_in_bad_fork", None)
    return refuses is not None and bool(_apart(lambda: {"spoilt": bool(refuses())})["spoilt"])


def _gather(*, want_gpu: bool) -> dict[str, Any]:
    torch = sys.modules["torch"]
    facts: dict[str, Any] = {
        "torch": {
            "version": str(torch.__version__),
            "git_version": getattr(torch.version, "git_version", None),
            "cuda": getattr(torch.version, "cuda", None),
        },
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "platform": {"system": platform.system(), "machine": platform.machine(), "libc": " ".join(platform.libc_ver()).strip()},
        "variables": variables(os.environ),
        "libraries": _libraries(torch),
    }
    if want_gpu:
        try:
            facts["gpu"] = _gpu(torch)
        except Exception as error:  # noqa: BLE001 - any failure to reach the device is the answer to "why not"
            facts["why_no_gpu"] = _why_no_gpu(torch, error)
    return facts


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that may change what a case shows, by name."""
    return {name: environ[name] for name in sorted(environ) if _VARIABLES.fullmatch(name) and not _PLACES.fullmatch(name)}


def model_facts(model: Any) -> dict[str, Any]:
    """What stands in the facts in the place of a GPU when the CPU model runs the cases."""
    info = dict(model.info())
    return {"gpu": {"name": str(info.get("name", "CPU model of CUDA graphs"))}, "model": info}


def _gpu(torch: Any) -> dict[str, Any]:
    torch.cuda.init()
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": str(properties.name),
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": int(properties.total_memory),
        "multiprocessors": int(properties.multi_processor_count),
        "driver": _driver(),
    }


def _why_no_gpu(torch: Any, error: Exception) -> str:
    if getattr(torch.version, "cuda", None) is None:
        return f"torch {torch.__version__} is built without CUDA (a CPU wheel): install a build with CUDA"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver is installed here (libcuda.so.1 cannot be loaded): install one, or pass the GPU into the container"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    text = str(error).strip().splitlines()
    found = f"torch says {type(error).__name__}: {text[0] if text else '(no text)'}"
    return found if hidden is None else f"{found}; CUDA_VISIBLE_DEVICES is {hidden!r}"


def _libraries(torch: Any) -> dict[str, str]:
    """Releases of the libraries that this torch brings or has loaded; one that cannot be found out is left out."""
    found: dict[str, str] = {}
    finders: dict[str, Callable[[], str | None]] = {
        "cublas": _cublas,
        "cudnn": lambda: _text(torch.backends.cudnn.version()),
        "nccl": lambda: _text(torch.cuda.nccl.version()) if getattr(torch.version, "cuda", None) else None,
        "triton": lambda: importlib.metadata.version("triton"),
        "numpy": lambda: importlib.metadata.version("numpy"),
    }
    for name, finder in finders.items():
        with suppress(Exception):
            version = finder()
            if version is not None:
                found[name] = version
    return found


def _text(version: object) -> str | None:
    if version is None:
        return None
    return ".".join(str(part) for part in version) if isinstance(version, tuple) else str(version)


def _cublas() -> str | None:
    """The release of the cuBLAS that is loaded into this process; asking it needs no device."""
    with open("/proc/self/maps") as file:
        paths = {line.split()[-1] for line in file if "libcublas.so" in line}
    for path in sorted(paths):
        library, parts = ctypes.CDLL(path), []
        for which in range(3):  # major, minor, patch
            number = ctypes.c_int()
            if library.cublasGetProperty(which, ctypes.byref(number)) != 0:
                return None
            parts.append(str(number.value))
        return ".".join(parts)
    return None


def _driver() -> str | None:
    """The NVIDIA driver's release, from NVML or from the kernel module."""
    with suppress(OSError, AttributeError):
        nvml, text = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96)) == 0:
            return text.value.decode()
    with suppress(OSError), open("/proc/driver/nvidia/version") as file:
        match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", file.read())
        return match[1] if match else None
    return None


def _apart(gather: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `gather` returns when it runs in a forked process, so that this one never touches a device."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            os.close(read)
            data = json.dumps(gather()).encode()
            while data:
                data = data[os.write(write, data) :]
        finally:
            os._exit(0)
    os.close(write)
    data, give_up = b"", time.monotonic() + _PATIENCE_S
    while select.select([read], [], [], max(0.0, give_up - time.monotonic()))[0]:
        chunk = os.read(read, 65536)
        if not chunk:
            break
        data += chunk
    os.close(read)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not data:
        raise UnavailableError(f"the process that looks at the GPU ended with wait status {status} and no answer: does `nvidia-smi` work?")
    found: dict[str, Any] = json.loads(data)
    return found
