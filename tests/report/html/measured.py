"""Synthetic costs for the pages: made up by formulas, never measured, and nothing of them may leave the tests."""

from __future__ import annotations

from collections.abc import Iterator

from making import environment

from replaydrift.costs.lengths import trace
from replaydrift.costs.metrics import METRICS
from replaydrift.costs.policies import MEASURED, bucket_for, buckets_of, padding
from replaydrift.costs.records import Block, Costs, Subject, Visit

RELEASES = ("2.11.0+cu130", "2.12.1+cu130", "2.13.0+cu130", "2.14.1+cu130")
BLOCKS = (("20261101-0900-matrix", "matrix"), ("20261102-0900-aa", "aa"), ("20261103-0900-upgrade", "upgrade"))
PROCESSES = 6
DEARER = 1.3  # What a capture costs on the last release, against the others.


def chain(kernels: int) -> dict[str, float]:
    """What a chain of so many kernels might cost; one kernel is no faster as a graph."""
    return {
        "replay_gpu_us": 3.0 + kernels,
        "replay_host_us": 7.0 + kernels / 300,
        "bare_loop_gpu_us": 3.0 + kernels,
        "first_replay_us": 30.0 + 2 * kernels,
        "eager_gpu_us": 9.0 * kernels if kernels > 1 else 3.5,
        "eager_host_us": 9.0 * kernels,
        "warmup_ms": 0.1 + kernels / 40,
        "capture_ms": 0.5 + kernels / 130,
        "record_ms": 0.2 + kernels / 300,
        "instantiate_ms": 0.2 + kernels / 200,
        "nodes": kernels,
        "graphs": 1,
        "pool_bytes": 0,
    }


def network(size: int, step_us: float) -> dict[str, float]:
    """What a small network might cost."""
    return chain(12) | {"replay_gpu_us": step_us, "eager_gpu_us": 6 * step_us, "pool_bytes": 2**16 * size, "nodes": 12}


def traced(model: str, name: str, policy: str) -> dict[str, float]:
    """What a trace might cost: 20 µs a request and an eighth of a microsecond an element, eight times the first eagerly."""
    lengths = trace(name)
    buckets = buckets_of(policy, lengths)
    done = padding(lengths, buckets)
    us = sum(20 + size / 8 if (size := bucket_for(length, buckets)) else 160 + length / 8 for length in lengths)
    counts = {
        "buckets": len(buckets), "graphs": len(buckets), "real_elements": done.real_elements, "padded_elements": done.padded_elements,
        "wrong_results": 3 if (model, policy) == ("mlp", "serving-list") else 0, "reserved_bytes": 2**25,
        "own_pools_reserved_bytes": 2**24 + 2**21 * len(buckets),
    }  # fmt: skip
    return counts | {"trace_gpu_ms": us / 1000, "trace_capture_ms": 2.5 * len(buckets), "input_copy_ms": 0.5, "output_clone_ms": 0.7}


def subjects() -> Iterator[tuple[str, dict[str, float]]]:
    """Every subject with its costs."""
    for kernels in (1, 10, 100, 1000, 10000):
        yield f"chain/{kernels}", chain(kernels)
    yield "mlp/256", network(256, 14.0)
    yield "decoder/128", network(128, 40.0)
    for name in ("long-tailed", "requests"):
        for model in ("decoder", "mlp"):
            for policy in MEASURED:
                yield f"bucketing/{model}/{name}/{policy}", traced(model, name, policy)
    yield "shared-pool/bug", chain(2) | {"pool_bytes": 2**21, "graphs": 2}
    yield "shared-pool/fix-capture-order", chain(2) | {"pool_bytes": 2**21, "graphs": 2}


def sample(metric: str, number: int, wobble: float) -> float:
    """What a process makes of a cost: nothing of a count; on the last release a capture is dearer."""
    if METRICS[metric].exact:
        return 1
    return wobble * (DEARER if metric == "capture_ms" and number == len(RELEASES) - 1 else 1)


def costs_of(machine: str, release: str, number: int, block: Block) -> Costs:
    """The costs of one release, captures dearer on the last one; counts alone for the model."""
    model = machine == "model"
    visits = []
    for place, visit in enumerate(block.numbers(release)):
        wobble = (1 + number / 200) * (1 + (place % 3) / 200)
        measured = {
            subject: Subject(
                "v1",
                {name: (value * sample(name, number, wobble),) for name, value in metrics.items() if not model or METRICS[name].exact},
                {"record_ms": "keep_graph is new in 2.8"} if subject == "chain/1" and number == len(RELEASES) - 1 else {},
            )
            for subject, metrics in subjects()
        }
        if number == 0:
            measured["shared-pool/fix-other"] = Subject("v1", {}, {}, "RuntimeError: <b>no</b> such thing")
        discarded = "throttled" if (release, place) == (RELEASES[1], 0) else ""
        visits.append(Visit(visit, "2026-11-01T09:00:00+00:00", 30.0, measured, 1980, 45, (), discarded))
    return Costs(block, environment(release, machine, "CPU model" if model else "NVIDIA H200", "model" if model else "cuda"), tuple(visits))


def synthetic_costs(machines: tuple[str, ...]) -> list[Costs]:
    """All blocks of all machines; the model has one."""
    found = []
    for machine in machines:
        for name, purpose in BLOCKS[: 1 if machine == "model" else None]:
            names = {"aa": RELEASES[-1:], "upgrade": RELEASES[2:]}.get(purpose, RELEASES)
            processes = 1 if machine == "model" else 2 * PROCESSES if purpose == "aa" else PROCESSES
            block = Block(name, purpose, names * processes)
            found += [costs_of(machine, release, RELEASES.index(release), block) for release in names]
    return found
