"""Two accesses of the same memory, one of them a write, that nothing orders: a race under some schedule."""

from __future__ import annotations

from replaydrift.model.findings import Finding, Findings
from replaydrift.model.observer_memory import Access, Cell
from replaydrift.model.observer_order import HOST, Clock
from replaydrift.model.observer_records import line_of
from replaydrift.model.observer_sites import Site

_ORDER = (
    "Put an order between them: wait_stream(), an event that the later stream waits for, or a synchronize() between the two. "
    "Graphs that share a pool must not run at the same time: give each a pool of its own, or let each replay wait for the one before."
)


class Races:
    """Looks at each access as it is submitted; what came before on other streams must be known to be done."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def read(self, cell: Cell, access: Access, clock: Clock) -> None:
        """A read must follow the last write."""
        if cell.write is not None:
            self._check(cell.write, access, clock, earlier_writes=True, later_writes=False)

    def write(self, cell: Cell, access: Access, clock: Clock) -> None:
        """A write must follow the last write and all reads since."""
        if cell.write is not None:
            self._check(cell.write, access, clock, earlier_writes=True, later_writes=True)
        for other in cell.reads.values():
            self._check(other, access, clock, earlier_writes=False, later_writes=True)

    def _check(self, earlier: Access, later: Access, clock: Clock, *, earlier_writes: bool, later_writes: bool) -> None:
        if earlier.thread == later.thread or clock.get(earlier.thread, 0) >= earlier.tick or earlier.coarse or later.coarse:
            return
        if HOST in (earlier.thread, later.thread):
            self._host(earlier, later, later_writes=later_writes)
        elif _reused(earlier, later):
            self._reuse(earlier, later)
        elif not _reported_as_freed(earlier, later):
            self._device(earlier, later, "writes" if earlier_writes else "reads", "writes" if later_writes else "reads")

    def _device(self, earlier: Access, later: Access, did: str, does: str) -> None:
        key = ("device-race", line_of(later), _captured(later), line_of(earlier), _captured(earlier))
        if self._findings.seen(*key):
            return
        why = (
            f"{_what(later)} {does} memory that {_what(earlier)} {did}; they run on {_where(later)} and {_where(earlier)}, "
            "and no event, wait or synchronize orders the two."
        )
        self._findings.add(key, Finding("device-race", line_of(later), why, _ORDER, [*_places(later, "this side"), *_places(earlier, "other side")]))

    def _reuse(self, earlier: Access, later: Access) -> None:
        assert earlier.allocation is not None
        key = ("cross-stream-reuse", line_of(earlier), earlier.allocation.site)
        if self._findings.seen(*key):
            return
        why = (
            f"{_what(earlier)} uses a tensor on {_where(earlier)} whose block belongs to stream {earlier.allocation.stream}; the tensor "
            f"died, the block went to another tensor of that stream, and {_what(later)} writes there while the first may still run."
        )
        fix = "Call tensor.record_stream(stream) after using a tensor on another stream, or let its own stream wait before the tensor dies."
        places = [("allocated", earlier.allocation.site), *_freed(earlier), *_places(later, "reused by")]
        self._findings.add(key, Finding("cross-stream-reuse", line_of(earlier), why, fix, places))

    def _host(self, earlier: Access, later: Access, *, later_writes: bool) -> None:
        if later.thread != HOST:
            return  # A stream's work always follows what the host did before it was submitted.
        kind = "host-write-race" if later_writes else "host-read-race"
        key = (kind, later.operation.site, line_of(earlier), earlier.operation.site)
        if self._findings.seen(*key):
            return
        if later_writes:
            why = f"The host writes here while {_what(earlier)}, queued before, may not have run: it then uses the new bytes."
            fix = "Wait before the write: record an event after the copy and call event.synchronize(), or use a buffer for each turn."
        else:
            why = f"The host reads here what {_what(earlier)} is to bring, and has not waited for it: it may see old bytes."
            fix = "Wait before the read: stream.synchronize(), an event, or a copy without non_blocking=True."
        self._findings.add((*key,), Finding(kind, later.operation.site, why, fix, _places(earlier, "queued")))


def _reused(earlier: Access, later: Access) -> bool:
    """True where the block changed hands between the two, in the default pool and outside of graphs."""
    before, after = earlier.allocation, later.allocation
    return (
        before is not None and after is not None and before is not after and before.freed is not None
        and not before.private and earlier.replay is None and earlier.thread != before.stream
    )  # fmt: skip


def _reported_as_freed(*accesses: Access) -> bool:
    """True where one of the two is a replay's use of freed memory: a finding of its own."""
    return any(
        access.replay is not None and access.allocation is not None and not access.allocation.private and access.allocation.freed
        for access in accesses
    )


def _captured(access: Access) -> Site | None:
    """Where the graph was captured that a replay's access belongs to: two replays race once, whatever number of nodes do."""
    if access.replay is None:
        return None
    site: Site = access.replay.graph.site
    return site


def _what(access: Access) -> str:
    if access.replay is None:
        return f"`{access.operation.short}`"
    return f"`{access.operation.short}` of graph {access.replay.graph.number}"


def _where(access: Access) -> str:
    stream = access.thread if access.replay is None else access.replay.stream
    name = "the default stream" if stream == 0 else f"stream {stream}"
    return name if access.replay is None or access.thread == stream else f"a branch of a graph on {name}"


def _places(access: Access, role: str) -> list[tuple[str, Site]]:
    if access.replay is None:
        return [(role, access.operation.site)]
    graph = access.replay.graph
    return [(f"{role}, replayed", access.replay.site), (f"{role}, recorded in graph {graph.number}", access.operation.site)]


def _freed(access: Access) -> list[tuple[str, Site]]:
    return [("freed", access.allocation.freed)] if access.allocation is not None and access.allocation.freed else []
