"""The C layer of streams and events: what `torch.cuda.Stream` and `torch.cuda.Event` of the installed torch derive from."""

from __future__ import annotations

from typing import Any, Final

import torch

from replaydrift.model import waiting
from replaydrift.model.captures import Capture, Node
from replaydrift.model.clock import CLOCK, DEFAULT_STREAM
from replaydrift.model.device import DEVICE, PRIORITIES, STREAMS
from replaydrift.model.failures import CAPTURED_EVENT, IMPLICIT, INVALID_HANDLE, INVALID_VALUE, ISOLATION, cuda_error, lack

_CUDA: Final = 1  # DeviceType::CUDA
_HANDLE: Final = 0x5EED0000


def forbid_in_capture(stream: int | None = None) -> None:
    """Raise as a call does that CUDA forbids while a stream is captured, and lose the captures it touches."""
    touched = list(DEVICE.captures.values()) if stream is None else [DEVICE.captures[stream]] if stream in DEVICE.captures else []
    touched = [capture for capture in touched if capture.mode != "relaxed" or stream is not None]
    if touched:
        DEVICE.refuse(touched, "a wait or query of the host")


class StreamBase:
    """A stream by its number; 0 is the legacy default stream."""

    stream_id: int
    device_index: int
    device_type: int
    _priority: int

    def __new__(cls, priority: int = 0, stream_id: int | None = None, device_index: int = 0, device_type: int = _CUDA, **more: Any) -> Any:
        """A stream of torch's pool, or the one with this number or handle."""
        handle = more.get("stream_ptr")
        if handle is not None:
            stream_id = handle - _HANDLE if handle else DEFAULT_STREAM
            if not 0 <= stream_id <= STREAMS * PRIORITIES:
                raise lack(f"streams made elsewhere (found the handle {handle:#x})")
        made = super().__new__(cls)
        made._priority = min(0, max(1 - PRIORITIES, int(priority)))
        made.stream_id = DEVICE.new_stream(made._priority) if stream_id is None else stream_id
        made.device_index, made.device_type = device_index, device_type
        return made

    def __init__(self, *_arguments: Any, **_more: Any) -> None:
        """All is done in `__new__`, as in C."""

    @property
    def device(self) -> torch.device:
        """cuda:0."""
        return torch.device("cuda", self.device_index)

    @property
    def cuda_stream(self) -> int:
        """A handle: 0 for the default stream, else a number of the model's."""
        return 0 if self.stream_id == DEFAULT_STREAM else _HANDLE + self.stream_id

    @property
    def native_handle(self) -> int:
        """The same handle."""
        return self.cuda_stream

    @property
    def priority(self) -> int:
        """The priority that was asked for, within CUDA's range."""
        return self._priority

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Lowest and highest priority."""
        return 0, -5

    def query(self) -> bool:
        """True where all work on the stream is done; forbidden while it is captured."""
        forbid_in_capture(self.stream_id)
        CLOCK.tick(1.0)
        done = CLOCK.free_at.get(self.stream_id, 0.0) <= CLOCK.now
        if done and DEVICE.observer is not None:
            DEVICE.observer.host_waited(self.stream_id)
        return done

    def synchronize(self) -> None:
        """Wait for the stream; forbidden while it is captured."""
        forbid_in_capture(self.stream_id)
        waiting.wait_for_stream(self.stream_id)

    def is_capturing(self) -> bool:
        """True while the stream takes part in a capture."""
        return self.stream_id in DEVICE.captures

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamBase) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))


class EventBase:
    """An event: a time once recorded on a stream that runs, a place in a graph once recorded on a stream that is captured."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False, **_more: Any
    ) -> Any:
        """An event that was never recorded."""
        if interprocess:
            raise lack("events shared between processes")
        made = super().__new__(cls)
        made._timing, made._external = enable_timing, external
        made._created = False
        made._time = None
        made._place = None
        made._moment = None
        return made

    def __init__(self, *_arguments: Any, **_more: Any) -> None:
        """All is done in `__new__`, as in C."""

    _timing: bool
    _external: bool
    _created: bool  # torch makes the event of CUDA at the first record; before that it waits for nothing
    _time: float | None
    _place: tuple[Capture, frozenset[int]] | None
    _moment: Any

    @property
    def device(self) -> torch.device | None:
        """cuda:0 once recorded."""
        return torch.device("cuda", 0) if self._created else None

    @property
    def cuda_event(self) -> int:
        """A handle, 0 before the first record."""
        return id(self) if self._created else 0

    def record(self, stream: Any = None) -> None:
        """Mark what the stream has been given so far. In a capture that is a place, or for an external event a node."""
        number = DEVICE.stream if stream is None else stream.stream_id
        capture = DEVICE.captures.get(number)
        self._created = True
        if capture is None:
            self._place, self._time = None, CLOCK.reached(number)
        elif self._external:
            capture.add(number, Node(_nothing, 0.0, (), "event record", stamps=self))
        else:
            self._place, self._time = (capture, capture.tails[number]), None
        if DEVICE.observer is not None:
            self._moment = DEVICE.observer.recorded(number, capture)

    def wait(self, stream: Any = None) -> None:
        """Let nothing more start on the stream before the event; across a capture's border this is an error, or joins it."""
        number = DEVICE.stream if stream is None else stream.stream_id
        capture = DEVICE.captures.get(number)
        if not self._created:
            return
        if self._external and capture is not None:
            capture.add(number, Node(_nothing, 0.0, (), "event wait", awaits=self))
        elif self._place is None:
            if capture is not None:
                capture.invalid = True
                raise cuda_error(ISOLATION)
            if self._time is not None:
                CLOCK.wait(number, self._time)
        else:
            self._join(number, capture, *self._place)
        if DEVICE.observer is not None:
            DEVICE.observer.waited(number, self._moment)

    def _join(self, number: int, capture: Capture | None, origin: Capture, tails: frozenset[int]) -> None:
        """Take the stream into the capture in which the event was recorded."""
        if origin not in DEVICE.captures.values():
            raise cuda_error(CAPTURED_EVENT)
        if capture is not None and capture is not origin:
            origin.invalid = capture.invalid = True
            raise cuda_error(ISOLATION)
        if number == DEFAULT_STREAM:
            origin.invalid = True
            raise cuda_error(IMPLICIT)
        DEVICE.captures[number] = origin
        origin.tails[number] = origin.tails.get(number, frozenset()) | tails

    def query(self) -> bool:
        """True where the event has come, or was never recorded."""
        self._refuse_captured()
        CLOCK.tick(1.0)
        come = self._time is None or self._time <= CLOCK.now
        if come and DEVICE.observer is not None:
            DEVICE.observer.host_waited_for(self._moment)
        return come

    def synchronize(self) -> None:
        """Wait for the event; at once where it was never recorded."""
        self._refuse_captured()
        if self._time is not None:
            CLOCK.catch_up(self._time)
        if DEVICE.observer is not None:
            DEVICE.observer.host_waited_for(self._moment)

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds of virtual time between two events that have come."""
        if not (self._timing and end._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._created and end._created):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        if self._time is None or end._time is None:
            raise cuda_error(INVALID_HANDLE)
        return (end._time - self._time) / 1000

    def ipc_handle(self) -> bytes:
        """Not in the model."""
        raise lack("events shared between processes")

    @classmethod
    def from_ipc_handle(cls, _device: Any, _handle: Any) -> Any:
        """Not in the model."""
        raise lack("events shared between processes")

    def _refuse_captured(self) -> None:
        if self._place is not None and self._time is None:
            under_way = {self._place[0]} & set(DEVICE.captures.values())
            DEVICE.refuse(under_way, "a wait or query of an event", CAPTURED_EVENT if under_way else INVALID_VALUE)


def _nothing() -> None:
    """The work of a node that only marks a place."""
