"""cuBLAS: a handle for each thread, made on its first use and never inside a capture; and the workspaces that it works in.

Up to 2.14 a workspace is made once for each handle and stream and kept: made inside a capture it lies in that graph's pool.
From 2.12 on the end of a graph drops all workspaces of its stream, those of other graphs included. From 2.15 on each
operator takes a workspace and gives it back at once.
"""

from __future__ import annotations

import os
import re
import threading
from typing import Final

import torch

from replaydrift.model import rules
from replaydrift.model.blocks import Block
from replaydrift.model.device import DEVICE

USERS: Final = frozenset(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::addmv", "aten::mv", "aten::dot", "aten::_addmm_activation"}
)
WORKSPACE_BYTES: Final = 32 << 20  # on compute capability 9.0; elsewhere about 8 MiB


class _Handles:
    """Numbers for handles; one whose thread has ended serves the next thread."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.made = 0

    def take(self) -> int | None:
        """A handle that was left; None where one would have to be made."""
        return self.left.pop() if self.left else None

    def make(self) -> int:
        """A new handle."""
        self.made += 1
        return self.made


class _Owner:
    """A thread's handle, which it leaves to others when it ends."""

    handle: int | None = None

    def __del__(self) -> None:
        if self.handle is not None and _HANDLES is not None:  # At interpreter exit the module is empty.
            _HANDLES.left.append(self.handle)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.owner = _Owner()


_HANDLES = _Handles()
_OF_THREAD = _OfThread()
_OF_BACKWARD = _Owner()  # On a GPU the backward pass runs in a thread of its own; here it runs in the caller's.
_WORKSPACES: dict[tuple[int, int], Block] = {}  # by handle and stream


def handle() -> int:
    """The current thread's handle, which is made where there is none; RuntimeError where that would be inside a capture."""
    in_backward = torch._C._current_graph_task_id() != -1 and torch.autograd.is_multithreading_enabled()
    owner = _OF_BACKWARD if in_backward else _OF_THREAD.owner
    if owner.handle is None:
        owner.handle = _HANDLES.take()
    if owner.handle is None:
        if DEVICE.capture is not None:
            status = rules.text("cublas-handle-in-capture")
            DEVICE.capture.invalid = True
            raise RuntimeError(f"CUDA error: {status} when calling `cublasCreate(handle)`")
        owner.handle = _HANDLES.make()
    return owner.handle


def current_handle() -> int:
    """The same with its workspace for the current stream, as `torch.cuda.current_blas_handle` has it ready."""
    number = handle()
    if rules.use("blas-workspaces") != "each-call":
        _keep_workspace(number)
    return number


def prepare(name: str) -> None:
    """Have the handle ready that an operator of this name needs."""
    if name in USERS:
        handle()


def work(name: str) -> None:
    """Take the workspace that the operator needs beside its results."""
    if name not in USERS:
        return
    if rules.use("blas-workspaces") == "each-call":
        DEVICE.free(DEVICE.allocate(_workspace_bytes()))
    else:
        _keep_workspace(handle())


def clear_workspaces(stream: int | None = None) -> None:
    """Give the workspaces back, of one stream or all, as `torch._C._cuda_clearCublasWorkspaces` does."""
    for key in [key for key in _WORKSPACES if stream in (None, key[1])]:
        DEVICE.free(_WORKSPACES.pop(key))


def graph_ended(stream: int) -> None:
    """A graph that was captured on the stream is gone."""
    if rules.use("blas-workspaces") == "until-a-graph-ends":
        clear_workspaces(stream)


def _keep_workspace(number: int) -> None:
    if (number, DEVICE.stream) not in _WORKSPACES:
        _WORKSPACES[number, DEVICE.stream] = DEVICE.allocate(_workspace_bytes())


def _workspace_bytes() -> int:
    """The sum of all `:KIB:COUNT` in CUBLAS_WORKSPACE_CONFIG, or what torch takes by default."""
    pairs = re.findall(r":([0-9]+):([0-9]+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
    return sum(int(kib) * 1024 * int(count) for kib, count in pairs) if pairs else WORKSPACE_BYTES
