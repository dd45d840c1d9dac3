"""What a step, a capture and a pool cost at each length, from the costs that are stored of a machine."""

from __future__ import annotations

from pathlib import Path
from statistics import linear_regression, median
from typing import Final

from replaydrift.costs.advice import Prices
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.lengths import REQUESTS, TRACES
from replaydrift.costs.policies import EAGER, TOP_THREE
from replaydrift.costs.records import Costs
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError
from replaydrift.releases import Release

# Workloads whose number is the length of a request: `decoder/128`.
MODELS: Final = ("decoder", "mlp")


def stored_prices(results: Path, machine: str | None, release: str | None, model: str) -> Prices | None:
    """The prices of the model's steps on the machine (the only one, if None), of the newest block that has them; None where none has.

    The release is the one given, else the newest in that block. TraceError where a machine or release was asked for and has
    none, or where several machines have some and none was asked for; StoreError where a file is damaged.
    """
    store = CostStore(results)
    names = [machine] if machine else list(store.machines())
    found = {name: prices for name in names if (prices := _of_machine(store, name, release, model)) is not None}
    if len(found) > 1:
        raise TraceError(f"{len(found)} machines have costs of {model!r}: say which with --machine NAME, one of {', '.join(found)}")
    if not found and (machine or release):
        where = f"machine {machine!r}" if machine else "any machine"
        of = f" on torch {release}" if release else ""
        raise TraceError(
            f"no costs of {model!r} at two lengths or more{of} are stored of {where} in {str(results)!r}: "
            "measure them with `replaydrift measure`, or say --linear A,B"
        )
    return next(iter(found.values()), None)


def _of_machine(store: CostStore, machine: str, release: str | None, model: str) -> Prices | None:
    for block in reversed(store.blocks(machine)):
        for name in reversed(store.releases(machine, block)):
            if release is None or Release.parse(release).is_met_by(name):
                prices = prices_of(store.read(machine, block, name), model)
                if prices is not None:
                    return prices
    return None


def prices_of(costs: Costs, model: str) -> Prices | None:
    """The prices of the model's steps in these costs; None where they know its replays at less than two lengths.

    Points are the medians over visits at the lengths that were measured by themselves (`decoder/128`). Where there are less than
    two of those, a straight line is fitted to the traces that were measured: their time against requests and elements.
    """
    place = f"{costs.environment.gpu}, torch {costs.environment.release}, block {costs.block.name}"
    points = _points(costs, model)
    if len(points["replay_gpu_us"]) > 1:
        lengths = ", ".join(str(length) for length, _ in points["replay_gpu_us"])
        captures = [(length, 1000 * ms) for length, ms in _added(points["capture_ms"], points["warmup_ms"])]
        return Prices(
            f"A step costs what the {model} of replaydrift cost at lengths {lengths} ({place}).",
            StepCost(tuple(points["replay_gpu_us"])),
            _curve(points["eager_gpu_us"]),
            _curve(captures),
            _curve(points["pool_bytes"], "bytes"),
        )
    return _fitted(costs, model, place)


def _points(costs: Costs, model: str) -> dict[str, list[tuple[int, float]]]:
    """By metric: length and median over visits, in the order of lengths."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in ("replay_gpu_us", "eager_gpu_us", "capture_ms", "warmup_ms", "pool_bytes")}
    for subject, metric, values in costs.series():
        kind, _, length = subject.partition("/")
        if kind == model and length.isdecimal() and metric in found and values:
            found[metric].append((int(length), median(values)))
    return {metric: sorted(points) for metric, points in found.items()}


def _added(captures: list[tuple[int, float]], warmups: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """A capture with its warm-up, where that was measured."""
    before = dict(warmups)
    return [(length, ms + before.get(length, 0.0)) for length, ms in captures]


def _curve(points: list[tuple[int, float]], unit: str = "µs") -> StepCost | None:
    return StepCost(tuple(points), unit) if points else None


def _fitted(costs: Costs, model: str, place: str) -> Prices | None:
    """A straight line through the traces of the model that ran with graphs alone; None where they differ too little to tell."""
    rows, captures = [], []
    for subject in costs.subjects:
        kind, _, rest = subject.partition("/")
        name, _, policy = rest.partition("/")[2].partition("/")
        value = {metric: costs.values(subject, metric) for metric in ("trace_gpu_ms", "trace_capture_ms", "padded_elements", "buckets")}
        if kind != "bucketing" or rest.partition("/")[0] != model or name not in TRACES or policy in (EAGER, TOP_THREE):
            continue
        if value["trace_gpu_ms"] and value["padded_elements"]:
            rows.append((REQUESTS, median(value["padded_elements"]), 1000 * median(value["trace_gpu_ms"])))
        if value["trace_capture_ms"] and value["buckets"]:
            captures.append(1000 * median(value["trace_capture_ms"]) / median(value["buckets"]))
    if len({padded for _, padded, _ in rows}) < 2:
        return None
    slope, height = linear_regression([padded / count for count, padded, _ in rows], [us / count for count, _, us in rows])
    step = StepCost.linear(max(height, 0.0), max(slope, 0.0))
    return Prices(
        f"A request costs {max(height, 0.0):.3g} + {max(slope, 0.0):.3g} × length µs, copies included: a line fitted to "
        f"{len(rows)} traces through the {model} of replaydrift ({place}).",
        step,
        capture=StepCost(((1, median(captures)),)) if captures else None,
    )
