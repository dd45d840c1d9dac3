"""The C layer of `torch.cuda`: the functions of `torch._C` that its Python calls, and what Python keeps beside them."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections import namedtuple
from typing import Any

import torch

from replaydrift.model import arena, blas, generators, graphs, lacking, mempools, rules, starting, statistics, streams
from replaydrift.model.clock import CLOCK, DEFAULT_STREAM
from replaydrift.model.costs import COSTS
from replaydrift.model.device import DEVICE
from replaydrift.model.dispatch import CudaModel
from replaydrift.model.pinned import PINNED
from replaydrift.model.submission import submit

NAME = "CPU model of CUDA graphs"
_Properties = namedtuple(  # noqa: PYI024 - torch's own is a C struct with these attributes
    "_Properties",
    "name major minor total_memory multi_processor_count is_integrated is_multi_gpu_board warp_size max_threads_per_multi_processor "
    "max_threads_per_block shared_memory_per_block shared_memory_per_block_optin shared_memory_per_multiprocessor regs_per_multiprocessor "
    "L2_cache_size gcnArchName uuid pci_bus_id pci_device_id pci_domain_id clock_rate memory_clock_rate memory_bus_width",
)
PROPERTIES = _Properties(
    NAME, 9, 0, arena.DEVICE_BYTES, 132, 0, 0, 32, 2048, 1024, 49152, 232448, 233472, 65536, 60 << 20, "", "model", 0, 0, 0, 2_000_000, 0, 0
)


def _synchronize() -> None:
    streams.forbid_in_capture()
    CLOCK.drain()
    if DEVICE.observer is not None:
        DEVICE.observer.host_waited(None)


def _sleep(cycles: int) -> None:
    CLOCK.tick(COSTS.host_op_us)
    submit("sleep", _nothing, cycles / COSTS.cycles_per_us, reads=[], writes=[])


def _nothing() -> None:
    """The GPU turns in place."""


def _set_stream(stream_id: int = 0, device_index: int = 0, device_type: int = 1) -> None:
    DEVICE.stream = stream_id


def _exchange_device(index: int) -> int:
    lacking.only_device(index)
    return 0


def _of_the_one_device(function: Any) -> Any:
    """The same function of a device as one of none; another device than cuda:0 is refused."""

    def call(device: Any = None) -> Any:
        lacking.only_device(device)
        return function()

    return call


FUNCTIONS: dict[str, Any] = {
    "_cuda_init": lambda: None,
    "_cuda_getDeviceCount": lambda: 1,
    "_cuda_getDevice": lambda: 0,
    "_cuda_setDevice": lacking.only_device,
    "_cuda_exchangeDevice": _exchange_device,
    "_cuda_maybeExchangeDevice": _exchange_device,
    "_cuda_isInBadFork": lambda: False,
    "_cuda_getDefaultStream": _of_the_one_device(lambda: (DEFAULT_STREAM, 0, 1)),
    "_cuda_getCurrentStream": _of_the_one_device(lambda: (DEVICE.stream, 0, 1)),
    "_cuda_getCurrentRawStream": _of_the_one_device(lambda: 0 if DEVICE.stream == DEFAULT_STREAM else streams._HANDLE + DEVICE.stream),
    "_cuda_setStream": _set_stream,
    "_cuda_synchronize": _synchronize,
    "_cuda_sleep": _sleep,
    "_cuda_emptyCache": DEVICE.empty_cache,
    "_host_emptyCache": PINNED.empty_cache,
    "_cuda_isCurrentStreamCapturing": graphs.is_current_stream_capturing,
    "_graph_pool_handle": graphs.new_pool_id,
    "_cuda_memoryStats": _of_the_one_device(statistics.memory_stats),
    "_cuda_memorySnapshot": statistics.snapshot,
    "_cuda_resetPeakMemoryStats": _of_the_one_device(statistics.reset_peaks),
    "_cuda_resetAccumulatedMemoryStats": _of_the_one_device(statistics.reset_accumulated),
    "_cuda_hostMemoryStats": statistics.host_memory_stats,
    "_cuda_clearCublasWorkspaces": blas.clear_workspaces,
    "_cuda_getCurrentBlasHandle": blas.current_handle,
    "_cuda_get_sync_debug_mode": lambda: 0,
    "_cuda_ipc_collect": lambda: None,
    "_cuda_hasPrimaryContext": lambda *_: True,
    "_cuda_canDeviceAccessPeer": lambda *_: False,
    "_cuda_getArchFlags": lambda: "sm_90",
    "_cuda_getCompiledVersion": lambda: 13000,
    "_cuda_getDriverVersion": lambda: 13000,
    "_cuda_getAllocatorBackend": lambda: "native",
    "_cuda_getAllocator": lambda: None,
    "_cuda_lock_mutex": lambda: None,
    "_cuda_unlock_mutex": lambda: None,
}


class _Ranges:
    """NVTX ranges, which nobody profiles here."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments: 0


def install() -> None:
    """Put the C layer in place, then let the installed torch's own Python build on it."""
    for name in _names_that_python_calls():
        if name not in FUNCTIONS:
            setattr(torch._C, name, lacking.Missing(name))
    for name, function in FUNCTIONS.items():
        setattr(torch._C, name, function)
    base: Any = torch._C
    if not hasattr(base, "__getattr__"):
        base.__getattr__ = lacking.unknown_name
    base._CudaStreamBase, base._CudaEventBase, base._CUDAGraph = streams.StreamBase, streams.EventBase, graphs.GraphBase
    base._CudaDeviceProperties = _Properties
    for name in ("streams", "graphs"):
        _reload(f"torch.cuda.{name}")
    mempools.install()
    _patch_python()


def _names_that_python_calls() -> set[str]:
    """The CUDA functions of torch._C, as far as a build without CUDA can know them: those that `torch.cuda` names."""
    known = {name for name in dir(torch._C) if name.startswith("_cuda_")}
    code = [function.__code__.co_names for function in vars(torch.cuda).values() if hasattr(function, "__code__")]
    return known | {name for names in code for name in names if name.startswith("_cuda_")}


def _reload(name: str) -> None:
    """Run a module of torch again, so that its classes derive from the model's; keep its names on `torch.cuda`."""
    module = importlib.reload(importlib.import_module(name))
    for exported in set(getattr(module, "__all__", ())) | {
        "Event",
        "Stream",
        "ExternalStream",
        "CUDAGraph",
        "graph",
        "make_graphed_callables",
    }:
        if hasattr(module, exported):
            setattr(torch.cuda, exported, getattr(module, exported))


def _patch_python() -> None:
    cuda: Any = torch.cuda
    cuda._initialized = True
    cuda.init = starting.start
    for module in [cuda, *(found for name, found in sys.modules.items() if name.startswith("torch.cuda."))]:
        for name, ours in (("_lazy_init", starting.start), ("_lazy_call", starting.once_started), ("current_device", starting.current_device)):
            if name in vars(module):  # Its own name for torch's function.
                setattr(module, name, ours)
    cuda.is_initialized = lambda: True
    cuda.is_available = lambda: True
    cuda._is_compiled = lambda: True
    cuda.device_count = lambda: 1
    cuda._exchange_device = cuda._maybe_exchange_device = _exchange_device
    cuda._sleep = _sleep
    cuda.nvtx._nvtx = _Ranges()
    cuda.get_device_properties = cuda._get_device_properties = _of_the_one_device(lambda: PROPERTIES)
    cuda.get_device_name = _of_the_one_device(lambda: NAME)
    cuda.get_device_capability = _of_the_one_device(lambda: (9, 0))
    cuda.is_bf16_supported = lambda *_arguments, **_more: True
    cuda.mem_get_info = _of_the_one_device(_mem_get_info)
    cuda.memory.mem_get_info = cuda.mem_get_info
    starting.stop()
    cuda._is_in_bad_fork = lambda: False
    torch.Generator = generators.CudaGenerator  # type: ignore[misc]
    torch.backends.cuda.is_built = lambda: True
    torch._use_cudnn_rnn_flatten_weight = lambda: False  # cuDNN wants a recurrent module's weights in one block; the CPU's kernels do not.
    torch.dropout = _dropout
    torch._VF.dropout = _dropout
    torch._C._group_tensors_by_device_and_dtype = _group_tensors
    if hasattr(torch, "accelerator"):
        _patch_accelerator(torch.accelerator)
    plain_sleep = time.sleep

    def sleep(seconds: float) -> None:
        """Virtual time passes for the GPU as real time does for the host."""
        plain_sleep(seconds)
        CLOCK.tick(seconds * 1e6)

    time.sleep = sleep  # type: ignore[assignment]
    _patch_threads()
    lacking.install()


def _mem_get_info() -> tuple[int, int]:
    return arena.DEVICE_BYTES - DEVICE.allocator.statistics.reserved.current, arena.DEVICE_BYTES


def _patch_threads() -> None:
    """Let a new thread compute on the device as well: a dispatch mode belongs to the thread that entered it."""
    thread: Any = threading.Thread
    begin = thread._bootstrap_inner

    def begin_in_the_model(self: Any) -> None:
        with CudaModel():
            begin(self)

    thread._bootstrap_inner = begin_in_the_model


def _patch_accelerator(accelerator: Any) -> None:
    accelerator.is_available = lambda: True
    accelerator.current_accelerator = lambda *_arguments, **_more: torch.device("cuda")
    accelerator.device_count = lambda: 1
    accelerator.current_device_index = accelerator.current_device_idx = lambda: 0
    accelerator.current_stream = lambda _device=None: torch.cuda.current_stream()
    accelerator.synchronize = lambda _device=None: _synchronize()
    torch._C._accelerator_getStream = lambda *_: torch.cuda.current_stream()  # type: ignore[attr-defined]
    if hasattr(accelerator, "Graph"):
        accelerator.Graph = _refuse_accelerator_graph


def _refuse_accelerator_graph(*_arguments: Any, **_more: Any) -> Any:
    raise RuntimeError(rules.text("accelerator-graph-refused"))


def _dropout(tensor: torch.Tensor, p: float = 0.5, train: bool = True) -> torch.Tensor:
    """Dropout as CUDA does it: one fused random operator."""
    if not train or p == 0:
        return tensor
    return torch.native_dropout(tensor, p, train)[0] if 0 < p < 1 and tensor.is_cuda else _plain_dropout(tensor, p, train)


_plain_dropout = torch.dropout


def _group_tensors(lists: Any, with_indices: bool = False) -> Any:
    """Tensors of several parallel lists by the device and dtype of those in the first."""
    grouped: dict[Any, Any] = {}
    for index, tensor in enumerate(lists[0]):
        key = (tensor.device, tensor.dtype)
        columns, indices = grouped.setdefault(key, ([[] for _ in lists], []))
        for column, values in zip(columns, lists, strict=True):
            if values:
                column.append(values[index])
        indices.append(index)
    return {key: (columns, indices if with_indices else []) for key, (columns, indices) in grouped.items()}
