"""cuBLAS: a handle for the process, made on first use and never inside a capture; a workspace for each stream."""

from __future__ import annotations

from typing import Final

from replaydrift.model import rules
from replaydrift.model.allocator import Block
from replaydrift.model.device import DEVICE

USERS: Final = frozenset(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addmv", "aten::mv", "aten::dot", "aten::_addmm_activation"}
)
WORKSPACE_BYTES: Final = 32 << 20  # on compute capability 9.0; elsewhere about 8 MiB


class _Handle:
    ready = False
    workspaces: dict[int, Block] = {}  # noqa: RUF012 - one process, one handle


def use(name: str) -> None:
    """Note that an operator needs cuBLAS now; RuntimeError where its handle would have to be made inside a capture."""
    if name not in USERS:
        return
    capture = DEVICE.capture
    if not _Handle.ready:
        if capture is not None:
            status = rules.text("cublas-handle-in-capture")
            capture.invalid = True
            raise RuntimeError(f"CUDA error: {status} when calling `cublasCreate(handle)`")
        _Handle.ready = True
    if DEVICE.stream not in _Handle.workspaces:
        _Handle.workspaces[DEVICE.stream] = DEVICE.allocate(WORKSPACE_BYTES)


def clear_workspaces() -> None:
    """Give the workspaces back, as `torch._C._cuda_clearCublasWorkspaces` does."""
    while _Handle.workspaces:
        _, block = _Handle.workspaces.popitem()
        DEVICE.free(block)
