"""What a capture froze or lost: addresses of memory that was freed, work that ran beside it, calls that it refused."""

from __future__ import annotations

from collections.abc import Iterable

from replaydrift.model.findings import Finding, Findings
from replaydrift.model.observer_memory import Allocation
from replaydrift.model.observer_records import Graph, Operation, Replay
from replaydrift.model.observer_sites import Site


def freed_memory(findings: Findings, replay: Replay, live: Iterable[Allocation]) -> None:
    """Report tensors that the graph has the address of and that died before this replay."""
    graph = replay.graph
    for allocation, (operation, reads, writes) in graph.outside.items():
        if allocation.freed is None:
            continue
        key = ("freed-memory", allocation.site, operation.site, graph.site)
        owner = None if allocation.pinned else next((other for other in live if _overlap(other, allocation)), None)
        if findings.seen(*key):
            known = findings.get(*key)
            assert known is not None
            if owner is not None and not any(role.startswith("now owned") for role, _ in known.places):
                known.places.append(("now owned by the tensor allocated", owner.site))
                known.why = _why(allocation, operation, graph, owner, reads=reads, writes=writes)
            continue
        places = [("recorded", operation.site), ("freed", allocation.freed), ("replayed", replay.site)]
        if owner is not None:
            places.append(("now owned by the tensor allocated", owner.site))
        fix = "Keep the tensor for as long as the graph is replayed, and write new data into it with copy_() or fill_()."
        if allocation.first_writer == "aten::_to_copy" and not writes:
            fix += " If autocast made it (the cached cast of a weight), capture under autocast(cache_enabled=False), or enter autocast inside."
        why = _why(allocation, operation, graph, owner, reads=reads, writes=writes)
        findings.add(key, Finding("freed-memory", allocation.site, why, fix, places))


def _why(allocation: Allocation, operation: Operation, graph: Graph, owner: Allocation | None, *, reads: bool, writes: bool) -> str:
    does = "reads and writes" if reads and writes else "writes" if writes else "reads"
    kind = "pinned host memory" if allocation.pinned else "the tensor"
    text = f"Graph {graph.number} {does} {kind} that was allocated here (`{operation.short}` has its address), and nobody keeps it: "
    if allocation.withheld:
        return text + "torch withholds a pinned block that the capture itself allocated, and that is all that keeps the bytes what they were."
    if allocation.pinned:
        return text + "its block is free, and the next pinned tensor of the size gets it: each replay then copies that one's bytes."
    if owner is None:
        return text + "its block is free, and the next tensor of the size may get it."
    return text + "its block has gone to another tensor" + (", which each replay writes over." if writes else ", and each replay reads that one.")


def _overlap(one: Allocation, other: Allocation) -> bool:
    return not one.pinned and one.address < other.address + other.size and other.address < one.address + one.size


_RECORD = (
    "Launch it on the capturing stream (torch.cuda.current_stream()), or fork its stream from the capturing one and join it again with "
    "wait_stream(); what is to run only once belongs before the capture."
)


def beside_capture(findings: Findings, operation: Operation, stream: int, graphs: Iterable[Graph]) -> None:
    """Report work that ran on a stream outside the capture and touched what belongs to the captured region."""
    for graph in graphs:
        for touch in operation.touches:
            allocation = touch.allocation
            if allocation is None:
                continue
            writer = graph.writers.get(allocation)
            if allocation.graph is graph or (touch.reads and writer is not None):
                role = [("recorded, not run", writer.site)] if writer is not None else [("allocated in the capture", allocation.site)]
                verb = "reads a result that was only recorded, not computed" if touch.reads else "writes into memory of the graph"
                _not_recorded(findings, operation, stream, graph, f"it {verb}", role)
            elif touch.writes:
                graph.unrecorded[allocation] = operation


def reads_unrecorded(findings: Findings, operation: Operation, graph: Graph) -> None:
    """Report a recorded operation that reads what was computed beside the capture."""
    for touch in operation.touches:
        if touch.reads and touch.allocation in graph.unrecorded:
            beside = graph.unrecorded[touch.allocation]  # type: ignore[index]
            _not_recorded(findings, beside, -1, graph, "the graph reads its result, which no replay computes again", [("read", operation.site)])


def _not_recorded(findings: Findings, operation: Operation, stream: int, graph: Graph, how: str, role: list[tuple[str, Site]]) -> None:
    key = ("not-recorded", operation.site, graph.site)
    if findings.seen(*key):
        return
    where = "another stream" if stream < 0 else "the default stream" if stream == 0 else f"stream {stream}"
    why = f"`{operation.short}` ran on {where} while graph {graph.number} was captured, once and never again: {how}."
    findings.add(key, Finding("not-recorded", operation.site, why, _RECORD, [("captured", graph.site), *role]))


def refused(findings: Findings, kind: str, what: str, at: Site, graphs: Iterable[Graph]) -> None:
    """Report a call that a capture does not permit."""
    key = (kind, at)
    if findings.seen(*key):
        return
    places = [("captured", graph.site) for graph in graphs]
    if kind == "sync-in-capture":
        why = f"`{what}` makes the host wait for the GPU, which no capture permits: the capture is lost, and the call raises."
        fix = "Move the call out of the capture, or keep the decision on the GPU (torch.where, a tensor in the place of a number)."
    else:
        why = f"`{what}` copies from or to ordinary host memory inside a capture, which torch refuses: a replay would use it when it is gone."
        fix = "Copy before the capture; or use pin_memory() with non_blocking=True and keep the tensor; or make constants with torch.full()."
    findings.add(key, Finding(kind, at, why, fix, places))
