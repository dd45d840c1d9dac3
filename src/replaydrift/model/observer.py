"""Watches a run of the model and says what its captures froze: told of every allocation, operation, wait and replay.

All is judged when work is submitted, by the order that streams, events and waits impose, never by assumed durations.
`watch()` puts an observer in place; the model tells it through `DEVICE.observer`.
"""

from __future__ import annotations

from typing import Any

import torch

from replaydrift.model import findings_frozen as frozen
from replaydrift.model.arena import is_pinned, on_device
from replaydrift.model.blocks import DEFAULT_POOL, Block
from replaydrift.model.captures import Capture
from replaydrift.model.device import DEVICE
from replaydrift.model.findings import Findings
from replaydrift.model.findings_hooks import Hooks
from replaydrift.model.findings_races import Races
from replaydrift.model.findings_values import Values, watch_outputs
from replaydrift.model.forms import tensors_in
from replaydrift.model.observer_memory import Access, Allocation, Shadow
from replaydrift.model.observer_order import HOST, Clock, Order, Thread, merge
from replaydrift.model.observer_records import Graph, Operation, Replay, lanes_of, touches_of
from replaydrift.model.observer_sites import here
from replaydrift.model.operators import Operator


class Observer:
    """The state of the watch. The methods without an underscore are the model's to call."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._order, self._shadow = Order(), Shadow()
        self._races, self._values, self._hooks = Races(self.findings), Values(self.findings), Hooks(self.findings)
        self._live: dict[int, Allocation] = {}
        self._captures: dict[int, Graph] = {}
        self._released: dict[int, Clock] = {}  # for blocks that other streams still use: what must be over before reuse
        self._landing: dict[int, tuple[torch.Tensor, Allocation, Thread, int]] = {}  # pageable memory that a queued copy fills

    # Memory

    def allocated(self, block: Block) -> None:
        """A block was handed out."""
        private = block.pool.id != DEFAULT_POOL
        graph = next((graph for number, graph in self._captures.items() if _pool_of(number) == block.pool.id), None) if private else None
        self._live[block.address] = Allocation(block.address, block.size, block.stream, here(), private=private, graph=graph)

    def freed(self, block: Block) -> None:
        """The last tensor on a block has gone."""
        known = self._live.pop(block.address, None)
        if known is not None:
            known.freed = here()
        if block.uses:
            moment = self._released[id(block)] = {}
            for stream in block.uses:
                merge(moment, self._order.moment(stream))

    def released(self, block: Block) -> None:
        """A block that other streams had used may be handed out again: they are done with it."""
        self._shadow.forget(block.address, block.address + block.size, self._released.pop(id(block), {}))

    def unmapped(self, address: int, size: int) -> None:
        """A segment was given back, for which the device had to be idle."""
        self._shadow.forget(address, address + size)

    def pinned(self, address: int, size: int) -> None:
        """A pinned block was handed out; torch has waited for copies that used it before."""
        self._shadow.forget(address, address + size)
        self._live[address] = Allocation(address, size, -1, here(), pinned=True, withheld=DEVICE.capture is not None)

    def unpinned(self, address: int) -> None:
        """The last tensor on a pinned block has gone."""
        known = self._live.pop(address, None)
        if known is not None:
            known.freed = here()

    # Work

    def submitted(self, name: str, stream: int, capture: Capture | None, reads: list[Any], writes: list[Any]) -> Operation:
        """A kernel or a copy was recorded, or goes into its stream's queue."""
        operation = Operation(name, here(), touches_of(reads, writes, name, self._allocation))
        if capture is not None:
            graph = self._captures[capture.number]
            graph.froze(operation)
            watch_outputs(graph, operation, writes, self._allocation)
            frozen.reads_unrecorded(self.findings, operation, graph)
            return operation
        clock = self._order.submit(stream)
        for tensor in writes:
            if not on_device(tensor) and not is_pinned(tensor) and tensor.numel():
                self._lands(tensor, operation, stream, clock[stream])
        self._perform(operation, stream, clock, None)
        if self._captures:
            frozen.beside_capture(self.findings, operation, stream, self._captures.values())
        return operation

    def host_ran(self, args: Any, kwargs: dict[str, Any], traits: Operator) -> None:
        """An operator ran on the host; only memory that queued copies may use is of interest."""
        if traits.is_view:
            return
        touched = [tensor for tensor in tensors_in((args, kwargs)) if self._is_watched(tensor)]
        if not touched:
            return
        written: list[Any] = []
        if traits.mutates:
            positions = [position for position in traits.returns_arguments if position is not None] or [0]
            names = traits.argument_names
            written = tensors_in([args[at] if at < len(args) else kwargs.get(names[at]) for at in positions])
        self._host(traits.name, touched, [tensor for tensor in written if self._is_watched(tensor)])

    def host_reads(self, name: str, tensor: torch.Tensor) -> None:
        """The host reads a tensor's bytes without an operator."""
        if self._is_watched(tensor):
            self._host(name, [tensor], [])

    def _host(self, name: str, reads: list[Any], writes: list[Any]) -> None:
        self._perform(Operation(name, here(), touches_of(reads, writes, name, self._allocation)), HOST, self._order.host(), None)

    def _perform(self, operation: Operation, thread: Thread, clock: Clock, replay: Replay | None) -> None:
        tick = clock[thread]
        for touch in operation.touches:
            if touch.reads:
                access = Access(operation, thread, tick, touch.allocation, replay, touch.coarse)
                for start, end in touch.runs:
                    for cell in self._shadow.over(start, end):
                        self._races.read(cell, access, clock)
                        self._values.read(cell, access)
                        cell.reads[thread] = access
        for touch in operation.touches:
            if touch.writes:
                access = Access(operation, thread, tick, touch.allocation, replay, touch.coarse)
                for start, end in touch.runs:
                    for cell in self._shadow.over(start, end):
                        self._races.write(cell, access, clock)
                        self._values.write(cell, access)
                        cell.reads.clear()
                        cell.write = access

    # Order

    def recorded(self, stream: int, capture: Capture | None) -> Clock | None:
        """An event was recorded; what it stands for. None for one inside a capture, whose edges the graph has."""
        return None if capture is not None else self._order.moment(stream)

    def waited(self, stream: int, moment: Clock | None) -> None:
        """A stream waits for an event."""
        if moment is not None:
            self._order.wait(stream, moment)

    def host_waited(self, stream: int | None) -> None:
        """The host has waited for a stream, or for all."""
        self._order.host_waits_for_stream(stream)
        self._settle()

    def host_waited_for(self, moment: Clock | None) -> None:
        """The host has waited for an event."""
        if moment is not None:
            self._order.host_waits(moment)
            self._settle()

    # Graphs

    def capture_began(self, graph: Any, capture: Capture) -> None:
        """A capture begins."""
        graph._observed = self._captures[capture.number] = Graph(capture.number, here())

    def capture_ended(self, graph: Any, capture: Capture) -> None:
        """A capture is over, in one way or another."""
        self._captures.pop(capture.number).active = False

    def replayed(self, graph: Any, nodes: list[Any], stream: int) -> None:
        """A graph's nodes go into a stream's queue."""
        observed: Graph = graph._observed
        self._values.replayed(observed)
        observed.replays += 1
        if observed.lanes is None:
            observed.lanes = lanes_of(nodes)
        replay = Replay(observed, observed.replays, stream, here())
        frozen.freed_memory(self.findings, replay, self._live.values())
        self._hooks.replayed(replay)
        if not any(observed.lanes):
            for node in nodes:
                if node.operation is not None:
                    self._perform(node.operation, stream, self._order.submit(stream), replay)
            return
        begin = self._order.moment(stream)
        ends: list[Any] = []
        for node, lane in zip(nodes, observed.lanes, strict=True):
            clock, thread = dict(begin), (stream, lane) if lane else stream
            for index in node.after:
                merge(clock, ends[index])
            clock[thread] = clock.get(thread, 0) + 1
            ends.append(clock)
            if node.operation is not None:
                self._perform(node.operation, thread, clock, replay)
        for clock in ends:
            self._order.wait(stream, clock)

    def refused(self, kind: str, what: str) -> None:
        """A capture refused a call."""
        frozen.refused(self.findings, kind, what, here(), self._captures.values())

    # Small helps

    def _allocation(self, tensor: torch.Tensor) -> Allocation | None:
        try:
            address = tensor.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):
            return None
        landing = self._landing.get(address)
        return landing[1] if landing is not None else self._live.get(address)

    def _is_watched(self, tensor: torch.Tensor) -> bool:
        try:
            return is_pinned(tensor) or bool(self._landing and tensor.untyped_storage().data_ptr() in self._landing)
        except (RuntimeError, NotImplementedError):
            return False

    def _lands(self, tensor: torch.Tensor, operation: Operation, stream: int, tick: int) -> None:
        """Watch ordinary host memory until its copy is known to be done. The tensor is held, so that nobody else gets its bytes."""
        storage = tensor.untyped_storage()
        allocation = Allocation(storage.data_ptr(), storage.nbytes(), -1, operation.site)
        self._landing[allocation.address] = tensor, allocation, stream, tick

    def _settle(self) -> None:
        for address, (_tensor, allocation, thread, tick) in list(self._landing.items()):
            if self._order.host_knows(thread, tick):
                del self._landing[address]
                self._shadow.forget(address, address + allocation.size)

    def install(self) -> None:
        """Let the model tell this observer from here on."""
        self._hooks.install()
        DEVICE.observer = self


def _pool_of(number: int) -> Any:
    return next((capture.pool for capture in DEVICE.captures.values() if capture.number == number), None)


def watch() -> Observer:
    """An observer of everything that the model does from here on. Install the model first."""
    observer = Observer()
    observer.install()
    return observer
