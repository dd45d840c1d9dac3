"""What the model knows only because somebody wrote it down: one table, keyed by release, each row with its source.

A verdict that used a row is no evidence for that fact, so `rules_used` tells a record which rows it rests on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PAGEABLE: Final = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. "
    "Please use tensor.pin_memory() or allocate the tensor with pin_memory=True."
)
NOT_IN_CAPTURE_MODE: Final = "Attempt to increase offset for a CUDA generator not in capture mode."
NOT_REGISTERED: Final = (
    "RNG op during graph capture but generator is not registered with the capturing graph. "
    "Call graph.register_generator_state() before capture_begin()."
)
OTHER_SEED: Final = "CUDAGeneratorImpl::set_current_seed can be called during stream capture only if new seed is the same as the original seed."
RANDOM_STUCK: Final = "Offset increment outside graph capture encountered unexpectedly."
REGISTER_DEPRECATED: Final = (
    "CUDAGraph.register_generator_state() is deprecated, and will be removed in a future PyTorch release. "
    "It is now a no-op and can be safely removed from your code."
)


@dataclass(frozen=True)
class Rule:
    """One fact: what it is about, the releases (first and last version, both included) it holds for, its value, who saw it."""

    key: str
    first: str
    last: str
    value: str
    source: str
    mechanism: bool = False  # it says where blocks lie, and no verdict by itself: using it is not noted

    def holds(self, version: tuple[int, int]) -> bool:
        """True for a release of this version, such as (2, 13)."""
        return _minor(self.first) <= version <= _minor(self.last)


def _gone(root: str, line: int) -> str:
    """What torch says of a pool that nobody holds any more; the line is the release's own."""
    return f'it->second->use_count > 0 INTERNAL ASSERT FAILED at "{root}/c10/cuda/CUDACachingAllocator.cpp":{line}, please report a bug to PyTorch. '


def _lost(line: int) -> str:
    """What torch says of an allocation for a capture that was lost; the line is the release's own."""
    place = f'"/__w/pytorch/pytorch/c10/cuda/CUDACachingAllocator.cpp":{line}, please report a bug to PyTorch. '
    return f"info.status != cudaStreamCaptureStatusInvalidated INTERNAL ASSERT FAILED at {place}Invalid stream capture status"


H200: Final = "an H200 with torch 2.11.0 to 2.15.0, driver 580"
PER_CAPTURE: Final = "pytorch/pytorch pull request 176752"
LAZY: Final = "pytorch/pytorch pull request 176753"
RULES: Final = (
    Rule("pageable-refused", "2.11", "9.9", PAGEABLE, f"{H200}: freed-cpu-input; the text stands in libtorch_cuda.so of these releases"),
    Rule("captured-pinned-withheld", "2.11", "9.9", "",
         f"pytorch/pytorch pull request 167507; {H200}: host-memory/two-uploads, and freed-cpu-input/bug-pinned for a block from before the capture"),
    Rule("unregistered-generator-refused", "2.11", "2.11", NOT_IN_CAPTURE_MODE, f"{H200}: rng/custom-unregistered on 2.11.0"),
    Rule("unregistered-generator-refused", "2.12", "2.13", NOT_REGISTERED, f"{H200}: rng/custom-unregistered on 2.12.1 and 2.13.0; {PER_CAPTURE}"),
    Rule("generator-registered-on-first-use", "2.14", "9.9", "", f"{H200}: rng/custom-unregistered on 2.14.1 and 2.15.0; {LAZY}"),
    Rule("register-generator-deprecated", "2.14", "9.9", REGISTER_DEPRECATED, f"{H200}: rng/custom-registered, on stderr, from 2.14 on; {LAZY}"),
    Rule("generator-state-blocks", "2.11", "2.11", "capture-stream", f"{H200}: dynamic-input/bug gives 0,1,1,1,1,1 on 2.11.0; CUDAGeneratorImpl.cpp: register_graph", mechanism=True),
    Rule("generator-state-blocks", "2.12", "2.13", "default-stream", f"{H200}: dynamic-input/bug gives 0,1,1,3,3,5; {PER_CAPTURE}: init_capture_state", mechanism=True),
    Rule("generator-state-blocks", "2.14", "9.9", "first-use", f"{H200}: dynamic-input/bug gives 0,1,1,1,1,1 again; {LAZY}: get_capture_state", mechanism=True),
    Rule("unmoved-generator", "2.11", "2.11", "as-last-written",
         f"{H200}: random-states/fork-alone-bug; pytorch/pytorch pull request 143777; libtorch_cuda.so of 2.11.0: replay_prologue writes nothing for an increment of 0, capture_prologue writes 0"),
    Rule("unmoved-generator", "2.12", "9.9", "never-written",
         f"{H200}: random-states/fork-alone-bug draws the numbers of seed 0; {PER_CAPTURE}; libtorch_cuda.so of 2.12.1 to 2.15.0: replay_prologue returns for an increment of 0, and CUDAGeneratorCaptureState::initialize writes nothing"),
    Rule("random-in-conditional", "2.12", "9.9", "RNG within data-dependent conditional nodes is not supported yet.",
         "the text stands in libtorch_cuda.so of 2.12.1 to 2.15.0; CUDAGraph.cpp: end_capture_to_conditional_node"),
    Rule("seed-in-capture", "2.11", "9.9", OTHER_SEED, "the text stands in libtorch_cuda.so of 2.11.0 to 2.15.0; pytorch/pytorch pull request 162505"),
    Rule("cublas-handle-in-capture", "2.11", "9.9", "CUBLAS_STATUS_NOT_INITIALIZED", "the seed, torch 2.14: autocast-cache/fix-inside without a warm-up"),
    Rule("blas-workspaces", "2.11", "2.11", "kept", "CublasHandlePool.cpp: cublas_handle_stream_to_workspace", mechanism=True),
    Rule("blas-workspaces", "2.12", "2.14", "until-a-graph-ends", "pytorch/pytorch pull request 175276: clearCublasWorkspacesForStream", mechanism=True),
    Rule("blas-workspaces", "2.15", "9.9", "each-call", "pytorch/pytorch pull request 194311; libtorch_cuda.so of 2.15.0 has TORCH_CUBLAS_WORKSPACE_CACHE",
         mechanism=True),
    Rule("failed-capture-keeps-generator", "2.11", "2.11", RANDOM_STUCK,
         f"CUDAGeneratorImpl.cpp of these releases: a lost capture skips capture_epilogue; the text stands in libtorch_cuda.so of 2.11.0 and of no later one: gone with {PER_CAPTURE}"),
    Rule("failed-capture-stays-under-way", "2.11", "2.12", "beginAllocateToPool: already recording to mempool_id",
         "pytorch/pytorch pull request 180395; in libtorch_cuda.so of 2.11.0 and 2.12.1 capture_end checks the error before it ends the allocation, from 2.13.0 on after"),
    Rule("failed-capture-keeps-pool", "2.11", "2.13", "", "pytorch/pytorch pull request 190348; CUDAGraph.h has allocated_pool_ from 2.14 on"),
    Rule("graph-destroyed-in-capture", "2.11", "9.9", "operation not permitted when stream is capturing",
         "pytorch/pytorch pull requests 161037 and 195397; CUDAGraph::reset of 2.11.0 to 2.15.0 sets no other capture mode"),
    Rule("first-launch-waits", "2.11", "9.9", "",
         f"{H200}: pinned/bug-eager gives 0,9,9,9; CUDA's documentation of lazy loading: loading may synchronise"),
    Rule("zeros-are-memory-sets", "2.15", "9.9", "",
         f"{H200}: graph-events/feed-bug gives 2,2,4 on 2.15.0; pytorch/pytorch pull request 195303; libtorch_cuda.so of 2.15.0 has zero_cuda_", mechanism=True),
    Rule("lost-capture-refuses-memory", "2.13", "2.13", _lost(2213), f"{H200}: streams-threads/thread-memory-bug on 2.13.0"),
    Rule("lost-capture-refuses-memory", "2.14", "2.14", _lost(2214), f"{H200}: streams-threads/thread-memory-bug on 2.14.1"),
    Rule("lost-capture-refuses-memory", "2.15", "9.9", _lost(2362), f"{H200}: streams-threads/thread-memory-bug on 2.15.0"),
    Rule("oldest-of-equal-blocks", "2.12", "2.12", "block",
         f"{H200}: parallel-replay on 2.12.1 beside 2.11.0; pytorch/pytorch pull request 178362; the comparator in libc10_cuda.so of 2.12.1", mechanism=True),
    Rule("oldest-of-equal-blocks", "2.13", "9.9", "segment",
         f"{H200}: parallel-replay; pytorch/pytorch pull request 183591; the comparator in libc10_cuda.so of 2.14.1 and 2.15.0; "
         "2.13.0 was not looked up, but the lines that its errors name are 2.14.1's within three",
         mechanism=True),
    Rule("sync-in-capture", "2.11", "9.9", "", f"{H200}: hidden-scalar/grad-scaler-bug; CUDA's documentation of stream capture"),
    Rule("empty-capture-warns", "2.11", "9.9", "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream.",
         "torch's own source, CUDAGraph.cpp"),
    Rule("accelerator-graph-refused", "2.12", "9.9", "Graph is not supported on device type: cuda",
         "the CUDA builds of 2.12.1, 2.14.1 and 2.15.0 without a GPU; pytorch/pytorch pull request 190307"),
    Rule("pool-without-holder", "2.11", "2.11", _gone("/pytorch", 2799), "the text stands in libc10_cuda.so of 2.11.0"),
    Rule("pool-without-holder", "2.12", "2.12", _gone("/pytorch", 3049), "the text stands in libc10_cuda.so of 2.12.1"),
    Rule("pool-without-holder", "2.13", "2.13", _gone("/__w/pytorch/pytorch", 3332), f"{H200}: memory-pools/taken-up-again-bug on 2.13.0"),
    Rule("pool-without-holder", "2.14", "2.14", _gone("/__w/pytorch/pytorch", 3329), "the text stands in libc10_cuda.so of 2.14.1"),
    Rule("pool-without-holder", "2.15", "9.9", _gone("/__w/pytorch/pytorch", 3473), "the text stands in libc10_cuda.so of 2.15.0"),
)  # fmt: skip

# Nobody asked a GPU, or the libraries, of an older release which of the rows hold for it: 2.8 records pageable copies, for one.
OLDEST: Final = (2, 11)
RULES_IN_FORCE: dict[str, str] = {}
_USED: set[str] = set()
_MECHANISMS: Final = frozenset(rule.key for rule in RULES if rule.mechanism)


def knows(release: str) -> bool:
    """True for a release that is not older than those whose behaviour the rows were taken from."""
    return _version(release) >= OLDEST


def put_in_force(release: str) -> None:
    """Choose the rows that hold for this torch."""
    version = _version(release)
    RULES_IN_FORCE.clear()
    RULES_IN_FORCE.update((rule.key, rule.value) for rule in RULES if rule.holds(version))


def use(key: str) -> str | None:
    """The row's value, noted as used; None where no such row holds for this release."""
    value = RULES_IN_FORCE.get(key)
    if value is not None and key not in _MECHANISMS:
        _USED.add(key)
    return value


def holds(key: str) -> bool:
    """True where this release has such a row. It is not noted as used: do that where something follows from it."""
    return key in RULES_IN_FORCE


def text(key: str) -> str:
    """The row's text, noted as used; for a release without the row, the text of the nearest that has it."""
    value = use(key)
    if value is None:
        _USED.add(key)
        value = next(rule.value for rule in RULES if rule.key == key)
    return value


def rules_used() -> list[str]:
    """The keys of the rows that were used in this process, sorted."""
    return sorted(_USED)


def _version(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    assert match is not None
    return int(match[1]), int(match[2])


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
