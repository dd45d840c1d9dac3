"""What a request, a capture and a pool cost at each length, from the bucketing costs that are stored of a machine.

What one request costs at a size was not measured by itself. But a trace costs as much as all its requests, each at the size that it
was padded to, and many lists of buckets were measured on several traces. So the curve is the one, rising and made of straight lines,
that explains them best: least squares of relative errors, none of its parts below zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from scipy.optimize import nnls

from replaydrift.costs.advice import Prices
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.lengths import LONGEST, TRACES, trace
from replaydrift.costs.policies import Padding, buckets_of, padding
from replaydrift.costs.records import Costs
from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError
from replaydrift.releases import Release

# The networks that traces are run through: `bucketing/decoder/long-tailed/powers-of-two`.
MODELS: Final = ("decoder", "mlp")

# Where the curve of a request may bend; where few traces were measured it is straight.
_KNOTS: Final = (0, 64, 128, 256, LONGEST)
_STRAIGHT: Final = (0, LONGEST)


def stored_prices(results: Path, machine: str | None, release: str | None, model: str) -> Prices | None:
    """The prices of the model on the machine (the only one, if None), of the newest block that has them; None where none has.

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
            f"no costs of traces through {model!r}{of} are stored of {where} in {str(results)!r}: "
            "measure them with `replaydrift measure`, or say --linear A,B or --curve CURVE.csv"
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
    """The prices of the model's requests in these costs; None where traces with less than two lists of buckets were timed."""
    traces = [one for one in _traces(costs, model) if not one.done.eager_requests or not one.done.requests]
    graphs = [one for one in traces if one.done.requests]
    timed = [one.row("trace_gpu_ms", one.done.requests) for one in graphs if "trace_gpu_ms" in one.values]
    if len({tuple(sizes) for sizes, _ in timed}) < 2:
        return None
    step, misfit = _fit(timed, _KNOTS if len(timed) > 2 * len(_KNOTS) else _STRAIGHT)
    eager = [one.row("trace_gpu_ms", one.lengths) for one in traces if not one.done.requests and "trace_gpu_ms" in one.values]
    captures = [one.row("trace_capture_ms", one.once) for one in graphs if "trace_capture_ms" in one.values]
    pools = [one.row("own_pools_reserved_bytes", one.once) for one in graphs if "own_pools_reserved_bytes" in one.values]
    place = f"{costs.environment.gpu}, torch {costs.environment.release}, block {costs.block.name}"
    return Prices(
        f"A request costs what explains {len(timed)} traces through the {model} of replaydrift to within {misfit:.1%}, copies of "
        f"inputs and outputs included ({place}).",
        _scaled(step, 1000),
        _scaled(_fit(eager)[0], 1000) if len(eager) > 1 else None,
        _scaled(_fit(captures)[0], 1000) if captures else None,
        _fit(pools, base=True)[0] if len(pools) > 2 else None,
    )


@dataclass(frozen=True)
class _Trace:
    """A measured trace: its lengths, what its policy's buckets do to them, and the medians of its metrics over visits."""

    lengths: Mapping[int, int]
    done: Padding
    values: Mapping[str, float]

    @property
    def once(self) -> dict[int, int]:
        """Each of its buckets, once."""
        return dict.fromkeys(self.done.requests, 1)

    def row(self, metric: str, sizes: Mapping[int, int]) -> tuple[Mapping[int, int], float]:
        """How often each size is in a metric, and the metric."""
        return sizes, self.values[metric]


def _traces(costs: Costs, model: str) -> Iterator[_Trace]:
    """The traces through a model, as far as they and their buckets are still those that were measured."""
    for subject in costs.subjects:
        kind, *rest = subject.split("/")
        if kind != "bucketing" or len(rest) != 3 or rest[0] != model or rest[1] not in TRACES:
            continue
        lengths = trace(rest[1])
        done = padding(lengths, buckets_of(rest[2], lengths))
        names = ("trace_gpu_ms", "trace_capture_ms", "own_pools_reserved_bytes", "padded_elements")
        values = {name: median(found) for name in names if (found := costs.values(subject, name))}
        if values.pop("padded_elements", None) == done.padded_elements:
            yield _Trace({length: lengths.count(length) for length in sorted(set(lengths))}, done, values)


def _fit(rows: Sequence[tuple[Mapping[int, int], float]], knots: Sequence[int] = _STRAIGHT, *, base: bool = False) -> tuple[StepCost, float]:
    """The curve through the knots whose sums over each row's sizes are nearest to the row's number, and the largest relative error.

    With `base`, every row has a part of its own that depends on no size, the same for all, which is left out of the curve.
    """
    table = np.array([[sum(count * _part(size, knots, place) for size, count in sizes.items()) for place in range(len(knots))] for sizes, _ in rows])
    if base:
        table = np.column_stack([table, np.ones(len(rows))])
    weights = 1 / np.array([max(number, 1e-9) for _, number in rows])
    found, _ = nnls(table * weights[:, None], np.ones(len(rows)))
    misfit = float(np.max(np.abs((table @ found) * weights - 1)))
    heights = np.cumsum(found[: len(knots)])
    return StepCost(tuple((knot, float(height)) for knot, height in zip(knots, heights, strict=True))), misfit


def _part(size: int, knots: Sequence[int], place: int) -> float:
    """How much of the rise that ends at a knot is in the height at a size: none of it before the knot below, all of it from the knot on.

    The first knot's rise is the height at the curve's beginning; the last one goes on beyond it.
    """
    if place == 0:
        return 1.0
    low, high = knots[place - 1 : place + 1]
    share = (size - low) / (high - low)
    return max(share, 0.0) if place == len(knots) - 1 else min(max(share, 0.0), 1.0)


def _scaled(curve: StepCost, factor: float) -> StepCost:
    """A curve of milliseconds as one of microseconds."""
    return StepCost(tuple((length, factor * cost) for length, cost in curve.points))
