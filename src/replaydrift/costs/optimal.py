"""The list of k bucket sizes with the lowest total cost, found by dynamic programming: no other list of k sizes costs less.

With sizes s(1) < … < s(m) to choose from and N(j) requests that s(j) holds, a bucket s(j) whose next smaller one is s(i) serves
N(j) − N(i) requests at f(s(j)) each. So with b buckets the last of which is s(j), the least cost is

    best(b, j) = price(s(j)) + f(s(j))·N(j) + min over i < j of (best(b−1, i) − f(s(j))·N(i))

and the minimum over i is that of lines with slopes −N(i) at the place f(s(j)). The slopes only fall, so their lower envelope is
kept as a stack and searched by halving: k·m·log m steps, where trying every i would take k·m².
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from replaydrift.costs.steps import StepCost
from replaydrift.errors import TraceError


@dataclass(frozen=True, slots=True)
class Choice:
    """A list of buckets, and what the requests and the buckets themselves come to in the unit of the step's cost."""

    buckets: tuple[int, ...]
    cost: float


def best_buckets(counts: Mapping[int, int], cost: StepCost, most: int, **more: object) -> Choice:
    """The cheapest list of at most `most` buckets; further arguments as for `best_of_each`. TraceError where there is no length."""
    return min(best_of_each(counts, cost, most, **more), key=lambda choice: (choice.cost, len(choice.buckets)))  # type: ignore[arg-type]


def best_of_each(
    counts: Mapping[int, int],
    cost: StepCost,
    most: int,
    *,
    price: Callable[[int], float] = lambda _: 0,
    sizes: Collection[int] | None = None,
) -> list[Choice]:
    """For each number of buckets from 1 to `most`, the list of just that many with the lowest cost, as far as there are sizes.

    `counts` says how often each length occurs; `price` is what a bucket of a size costs by itself, such as its capture, in the
    same unit; `sizes` are those to choose from, by default the lengths, which loses nothing where cost and price only rise.
    Every length is served by the smallest bucket that holds it. TraceError where there is no length, or no size for the longest.
    """
    if not counts or most < 1:
        raise TraceError(f"cannot choose {most} bucket(s) for {len(counts)} length(s): expected at least one of each")
    lengths = sorted(counts)
    chosen = sorted(set(sizes if sizes is not None else lengths))
    if not chosen or chosen[-1] < lengths[-1]:
        raise TraceError(f"no size holds the longest length, {lengths[-1]}: expected one of at least that among those to choose from")
    held = [0, *accumulate(counts[length] for length in lengths)]
    last = bisect_left(chosen, lengths[-1])
    served = [0, *(held[bisect_left(lengths, size + 1)] for size in chosen)]  # Place 0 is no bucket at all, and so in what follows.
    steps, prices = [0.0, *(cost.at(size) for size in chosen)], [0.0, *(price(size) for size in chosen)]
    before: list[float | None] = [0, *(None for _ in chosen)]
    parents: list[list[int]] = []
    found = []
    for _ in range(min(most, len(chosen))):
        before, origins = _one_more(before, steps, prices, served)
        parents.append(origins)
        ends = [(total, place) for place, total in enumerate(before) if total is not None and place > last]
        if ends:
            total, place = min(ends)
            found.append(Choice(_list(chosen, parents, place), total))
    return found


def _one_more(
    before: Sequence[float | None], steps: Sequence[float], prices: Sequence[float], served: Sequence[int],
) -> tuple[list[float | None], list[int]]:  # fmt: skip
    """The least cost with one bucket more that ends at each place, and the place where the one before it ends; None, 0 where none can."""
    envelope = _Envelope()
    costs: list[float | None] = [None]
    origins = [0]
    for place in range(1, len(before)):
        smaller = before[place - 1]
        if smaller is not None:
            envelope.add(-served[place - 1], smaller, place - 1)
        if envelope.lines:
            least, origin = envelope.lowest(steps[place])
            costs.append(prices[place] + steps[place] * served[place] + least)
            origins.append(origin)
        else:
            costs.append(None)
            origins.append(0)
    return costs, origins


def _list(sizes: Sequence[int], parents: Sequence[Sequence[int]], place: int) -> tuple[int, ...]:
    """The sizes of the list that ends at this place, from the last to the first and then turned round."""
    picked = []
    for origins in reversed(parents):
        picked.append(sizes[place - 1])
        place = origins[place]
    return tuple(reversed(picked))


class _Envelope:
    """The lines that are lowest somewhere, in the order of their falling slopes, which is that of the places they are lowest at."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, float, int]] = []  # Slope, height at 0, and what the line stands for.

    def add(self, slope: int, height: float, name: int) -> None:
        """Take in a line that falls at least as fast as all before it."""
        lines = self.lines
        if lines and lines[-1][0] == slope:
            if lines[-1][1] <= height:
                return
            lines.pop()
        while len(lines) > 1:
            (first, base, _), (middle, top, _) = lines[-2:]
            # Where the new line crosses the first but one before the last does, the last is lowest nowhere.
            if (height - base) * (first - middle) > (top - base) * (first - slope):
                break
            lines.pop()
        lines.append((slope, height, name))

    def lowest(self, x: float) -> tuple[float, int]:
        """The value at x of the lowest line there, and what it stands for."""
        low, high = 0, len(self.lines) - 1
        while low < high:
            middle = (low + high) // 2
            left, right = self.lines[middle], self.lines[middle + 1]
            if right[0] * x + right[1] <= left[0] * x + left[1]:
                low = middle + 1
            else:
                high = middle
        slope, height, name = self.lines[low]
        return slope * x + height, name
