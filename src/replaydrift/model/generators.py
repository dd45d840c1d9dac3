"""Generators of the device: seed and offset, whose they are, and when a graph takes part in one.

An eager operator takes the offset when it is submitted. A captured one takes its offset relative to the start of the graph,
and each replay starts where the generator then stands and moves it on by all that the graph consumes. So reseeding repeats
masks, and eager and graph agree.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import torch

from replaydrift.model import rules
from replaydrift.model.blocks import DEFAULT_POOL, Block
from replaydrift.model.clock import DEFAULT_STREAM
from replaydrift.model.device import DEVICE
from replaydrift.model.lacking import only_device

_DEFAULT_SEED: Final = 67280421310721
UNWRITTEN: Final = -1  # the position where no replay writes seed and position: both are read as 0, what lies in fresh memory


class State:
    """Seed and offset of one generator; while a graph is captured or replayed, `base` is where its offsets start."""

    def __init__(self, seed: int = _DEFAULT_SEED) -> None:
        self.seed, self.offset = seed, 0
        self.registered: set[int] = set()  # graphs that it was registered with, by id
        self.blocks: list[Block] = []  # up to 2.11: seed and offset on the device, shared by all its graphs
        self.written = 0  # up to 2.11: the position that lies on the device, by a capture or a replay of any of its graphs
        self.stuck = False  # up to 2.11: a capture that used it was lost, and it still takes itself for captured

    def register(self, graph: int) -> None:
        """Let a graph use the generator. Up to 2.11 the first graph to do so allocates, on the stream that is current then."""
        if not self.registered and rules.use("generator-state-blocks") == "capture-stream":
            self.blocks = state_blocks(DEVICE.stream)
        self.registered.add(graph)

    def unregister(self, graph: int) -> None:
        """A graph is gone; with the last one go the blocks that all of them shared."""
        self.registered.discard(graph)
        while self.blocks and not self.registered:
            DEVICE.free(self.blocks.pop(0))

    def take(self, amount: int) -> int:
        """The offset, which moves on; RuntimeError after a lost capture, up to 2.11."""
        if self.stuck:
            raise RuntimeError(rules.text("failed-capture-keeps-generator"))
        taken, self.offset = self.offset, self.offset + amount
        return taken


def _forbid_in_capture(attempt: str) -> None:
    """What torch says to a call that a capture cannot hold; nothing else about the capture is lost."""
    if DEVICE.capture is not None:
        raise RuntimeError(
            f"{attempt} during CUDA graph capture. If you need this call to be captured, please file an issue. "
            "Current cudaStreamCaptureStatus: cudaStreamCaptureStatusActive"
        )


_PlainGenerator: Any = torch.Generator
_STATES: dict[int, State] = {}  # by address of the C++ generator, which reaches operators as another Python object
_KEEP: list[Any] = []


class CudaGenerator(_PlainGenerator):
    """A generator on the device. The C++ object beneath is a CPU one that gives nothing but its identity."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """A generator of that device."""
        if torch.device(device).type == "cuda":
            only_device(device)
            _forbid_in_capture("Cannot construct a new CUDAGeneratorImpl")
            return cls._of(State())
        return super().__new__(cls, "cpu")

    @classmethod
    def _of(cls, state: State) -> Any:
        """A generator on the device that draws from this state, which others may share."""
        made = _PlainGenerator.__new__(cls, "cpu")
        _STATES[made._cdata] = state
        _KEEP.append(made)  # An address must not come back as another generator's.
        return made

    @property
    def _state(self) -> State | None:
        return _STATES.get(self._cdata)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """cuda:0, or cpu for a generator that was asked for there."""
        return torch.device("cuda", 0) if self._state else torch.device("cpu")

    def manual_seed(self, seed: int) -> Any:
        """Set the seed; the offset starts at 0 again. In a capture only the seed it has is taken, and nothing happens."""
        state = self._state
        if state is None:
            return super().manual_seed(seed)
        if DEVICE.capture is not None:
            _check_seed(state, int(seed) % (1 << 64))
            return self
        state.seed, state.offset = int(seed) % (1 << 64), 0
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._state.seed if self._state else super().initial_seed()

    def seed(self) -> int:
        """A seed from the system, which is set."""
        if self._state:
            _forbid_in_capture("Cannot call CUDAGeneratorImpl::seed")
        fresh = super().seed()
        if self._state:
            self.manual_seed(fresh)
        return fresh

    def get_offset(self) -> int:
        """The offset."""
        if self._state is None:
            return super().get_offset()  # type: ignore[misc]
        _forbid_in_capture("Cannot call CUDAGeneratorImpl::get_offset")
        return self._state.offset

    def set_offset(self, offset: int) -> Any:
        """Set the offset."""
        if self._state is None:
            return super().set_offset(offset)  # type: ignore[misc]
        _forbid_in_capture("Cannot call CUDAGeneratorImpl::set_offset")
        self._state.offset = int(offset)
        return self

    def get_state(self) -> torch.Tensor:
        """Seed and offset as bytes on the CPU; in a capture the offset counts from the graph's beginning."""
        state, capture = self._state, DEVICE.capture
        if state is None:
            return super().get_state()
        offset = state.offset if capture is None else join(state, capture)
        return torch.tensor(list(state.seed.to_bytes(8, "little") + offset.to_bytes(8, "little")), dtype=torch.uint8)

    def set_state(self, new_state: torch.Tensor) -> Any:
        """Set seed and offset from such bytes; in a capture the seed must be the one it has, and the offset is the graph's."""
        state, capture = self._state, DEVICE.capture
        if state is None:
            return super().set_state(new_state)
        data = bytes(new_state.tolist())
        seed, offset = int.from_bytes(data[:8], "little"), int.from_bytes(data[8:16], "little")
        if capture is None:
            state.seed, state.offset = seed, offset
        else:
            _check_seed(state, seed)
            join(state, capture)
            capture.generators[state] = offset
        return self

    def clone_state(self) -> Any:
        """A generator of its own in the same state."""
        if self._state is None:
            return super().clone_state()
        _forbid_in_capture("Cannot call CUDAGeneratorImpl::clone_impl")
        state = State(self._state.seed)
        state.offset = self._state.offset
        return CudaGenerator._of(state)

    def graphsafe_get_state(self) -> Any:
        """Another generator that shares the state which this one draws from now."""
        return CudaGenerator._of(self._state) if self._state else super().graphsafe_get_state()

    def graphsafe_set_state(self, state: Any) -> Any:
        """Share the other generator's state."""
        if self._state is None:
            return super().graphsafe_set_state(state)
        _STATES[self._cdata] = _STATES[state._cdata]
        return self


def state_blocks(stream: int) -> list[Block]:
    """One block for the seed and one for the offset, in the default pool: they outlive the capture that asks for them."""
    return [DEVICE.allocate(8, stream, DEFAULT_POOL) for _ in range(2)]


@cache
def default_generators() -> tuple[Any, ...]:
    """The device's default generator, one for the one device: what `torch.cuda.default_generators` is once CUDA has started."""
    return (CudaGenerator("cuda"),)


def default_state() -> State:
    """The state of the device's default generator."""
    return state_of(default_generators()[0])


def state_of(generator: Any) -> State:
    """The state behind a generator object; ValueError for one of the CPU."""
    state = _STATES.get(generator._cdata)
    if state is None:
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    return state


def join(state: State, capture: Any) -> int:
    """How far into the graph's own numbers a state stands in this capture, of which it is part from here on."""
    if capture.bodies:
        _draw_in_body(capture)
    if state not in capture.generators:
        _check_registered(state, capture)
        capture.random_bases[state] = [state.offset]
        if rules.use("generator-state-blocks") == "first-use":
            capture.state_blocks += state_blocks(DEFAULT_STREAM)
        capture.generators[state] = 0
    return int(capture.generators[state])


def _draw_in_body(capture: Any) -> None:
    """A body of a conditional node is a capture of its own, of which no graph tells a generator; from 2.14 on its end refuses."""
    refusal = rules.RULES_IN_FORCE.get("unregistered-generator-refused")
    if refusal is not None:
        rules.use("unregistered-generator-refused")
        raise RuntimeError(refusal)
    capture.bodies[-1].drew = True


def _check_seed(state: State, seed: int) -> None:
    if seed != state.seed:
        raise RuntimeError(rules.text("seed-in-capture"))


def _check_registered(state: State, capture: Any) -> None:
    """Up to some release, a generator of one's own had to be registered with the graph before its capture."""
    if state is default_state() or capture.graph_id in state.registered:
        return
    rules.use("generator-registered-on-first-use")
    refusal = rules.RULES_IN_FORCE.get("unregistered-generator-refused")
    if refusal is not None:
        rules.use("unregistered-generator-refused")
        raise RuntimeError(refusal)
