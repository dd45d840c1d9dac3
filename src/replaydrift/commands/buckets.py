"""`replaydrift buckets TRACE.csv`: which bucket sizes to capture graphs for, given the lengths of a person's own requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replaydrift.commands import options
from replaydrift.costs.advice import MOST, Advice, Option, Prices, advise
from replaydrift.costs.curves import MODELS, stored_prices
from replaydrift.costs.lengths import read_trace
from replaydrift.costs.own_curve import read_prices
from replaydrift.costs.steps import StepCost

_NOT_TIMED = (
    "No costs are stored in {results}, so nothing below is a time: what is minimised is padding, one element as dear as another. "
    "Measure with `replaydrift measure`, or say --linear A,B or --curve CURVE.csv."
)


class Linear(click.ParamType):  # type: ignore[type-arg]
    """`A,B`, two numbers of at least 0."""

    name = "A,B"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """The pair; a usage error where the text is none."""
        try:
            fixed, slope = (float(part) for part in str(value).split(","))
        except ValueError:
            fixed = slope = -1.0
        if not (0 <= fixed < float("inf") and 0 <= slope < float("inf")):
            self.fail(f"found {value!r}, expected two numbers of at least 0, such as 12,0.05", param, ctx)
        return fixed, slope


@click.command()
@click.argument("trace", type=click.Path(path_type=Path, dir_okay=False), metavar="TRACE.csv")
@click.option("--column", metavar="NAME", help="The column of lengths.  [default: the only one, or 'length']")
@click.option("--buckets", "number", type=click.IntRange(min=1), metavar="K", help="How many buckets.  [default: what pays]")
@click.option("--most", type=click.IntRange(min=1), default=MOST, show_default=True, help="How many buckets are tried at most.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="How often so many requests come for one capture.")
@click.option("--multiple-of", type=click.IntRange(min=1), default=1, show_default=True, help="Sizes are multiples of this.")
@click.option("--linear", type=Linear(), help="A request costs A + B × length µs, instead of what is stored.")
@click.option(
    "--curve", type=click.Path(path_type=Path, dir_okay=False), metavar="CURVE.csv",
    help="A request costs what you measured: columns length and step_us; eager_us, capture_ms, pool_bytes if known.",
)  # fmt: skip
@click.option("--capture-ms", type=click.FloatRange(min=0), metavar="C", help="Warm-up and capture of a bucket, ditto.")
@click.option("--model", type=click.Choice(MODELS), default=MODELS[0], show_default=True, help="Whose stored costs.")
@click.option("--release", help="Measured on which torch.  [default: the newest]")
@options.results
@options.machine
@options.as_json
def command(
    trace: Path, column: str | None, number: int | None, most: int, repeats: int, multiple_of: int, linear: tuple[float, float] | None,
    curve: Path | None, capture_ms: float | None, model: str, release: str | None, results: Path, machine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Say which bucket sizes to capture graphs for, given the lengths in TRACE.csv: one a line, or a column of them.

    A request costs what you measured of a model of your own (--curve, or a rough --linear), else what the store knows of a model of
    replaydrift's on a GPU. Where nothing is known, padding is what is minimised, and it says so.
    """
    if linear and curve:
        raise click.UsageError("--linear and --curve both say what a request costs: give one of them")
    lengths = read_trace(trace, column)
    given = read_prices(curve) if curve else None if linear else stored_prices(results, machine, release, model)
    prices = _prices(linear, capture_ms, given, results)
    advice = advise(lengths, prices, number=number, most=most, repeats=repeats, multiple_of=multiple_of)
    if as_json:
        click.echo(json.dumps(_tree(advice), indent=1))
    else:
        _print(trace, advice)


def _prices(linear: tuple[float, float] | None, capture_ms: float | None, given: Prices | None, results: Path) -> Prices:
    if linear:
        fixed, slope = linear
        step = StepCost.linear(fixed, slope)
        prices = Prices(f"A request costs {fixed:g} + {slope:g} × length µs, as given.", step)
    else:
        prices = given or Prices(_NOT_TIMED.format(results=f"{str(results)!r}"), StepCost.elements())
    if capture_ms is None:
        return prices
    if not prices.timed:
        raise click.UsageError("--capture-ms needs a time of a step to be held against: say --linear A,B too, or --curve CURVE.csv")
    capture = StepCost(((1, capture_ms * 1000),))
    source = f"{prices.source} A bucket costs {capture_ms:g} ms, as given."
    return Prices(source, prices.step, prices.eager, capture, prices.pool_bytes)


def _print(trace: Path, advice: Advice) -> None:
    console = Console(highlight=False)
    lengths, best = advice.lengths, advice.best
    requests = sum(lengths.values())
    console.print(Text(f"{trace}: {requests:,} requests of {len(lengths):,} lengths, {min(lengths):,} to {max(lengths):,}"))
    console.print(Text(advice.prices.source, style="bold" if not advice.prices.timed else ""))
    console.print()
    console.print(Text(f"Advised: {_many(len(best.buckets))}, {advice.because}", style="bold"))
    console.print(Text("  " + " ".join(map(str, best.buckets))))
    for line in _facts(advice, best):
        console.print(Text(f"  {line}"))
    if advice.near_longest:
        console.print(Text("  Nine of ten requests are nearly as long as the longest: padding all to it is fine as well."))
    console.print()
    console.print(_table(advice, _told(advice)))
    console.print()
    console.print(_table(advice, (best, *advice.others)))


def _facts(advice: Advice, option: Option) -> Iterator[str]:
    done = option.padding
    yield f"padding waste {done.waste:.1%}: {done.padded_elements:,} elements computed, {done.real_elements:,} asked for"
    if advice.prices.timed and option.steps is not None:
        times = f", {advice.repeats:,} times" if advice.repeats > 1 else ""
        yield f"{_ms(option.steps)} for these requests{times}"
        yield f"{_ms(option.captures)} once, for warm-up and capture" if option.captures is not None else "what a capture costs is not known"
    if option.own_pools_bytes is not None and option.shared_pool_bytes is not None:
        yield (
            f"memory {_mib(option.own_pools_bytes)} with a pool for each bucket; one shared pool, captured largest first, "
            f"takes {_mib(option.shared_pool_bytes)} or a little more"
        )


def _told(advice: Advice) -> Iterator[Option]:
    """The best of each number, up to some beyond the best one: further on nothing is to be seen."""
    yield from advice.by_number[: max(len(advice.best.buckets) + 4, 8)]


def _table(advice: Advice, rows: Iterable[Option]) -> Table:
    """What each list costs, and how much more than the advised one that is."""
    timed, priced = advice.prices.timed, advice.prices.capture is not None
    table = Table("policy", box=None, header_style="bold", pad_edge=False)
    for name in ("buckets", "waste", *(["requests"] if timed else []), *(["captures"] if priced else []), "against advised"):
        table.add_column(name, justify="right")
    for one in rows:
        above = advice.above_best(one)
        cells = [str(len(one.buckets)), f"{one.padding.waste:.1%}"]
        cells += [_ms(one.steps)] if timed else []
        cells += [_ms(one.captures)] if priced else []
        cells.append("not known" if above is None else "–" if one is advice.best else f"{above:+.1%}")
        table.add_row(Text(one.policy), *map(Text, cells), style="bold" if one is advice.best else "")
    return table


def _many(count: int) -> str:
    return f"{count} bucket{'s' * (count != 1)}"


def _ms(us: float | None) -> str:
    return "–" if us is None else f"{us / 1000:,.4g} ms" if us < 1e7 else f"{us / 1e6:,.4g} s"


def _mib(count: float) -> str:
    return f"{count / 2**20:,.4g} MiB"


def _tree(advice: Advice) -> dict[str, object]:
    return {
        "requests": sum(advice.lengths.values()),
        "lengths": len(advice.lengths),
        "longest": max(advice.lengths),
        "repeats": advice.repeats,
        "unit": advice.prices.step.unit,
        "source": advice.prices.source,
        "because": advice.because,
        "best": _option_tree(advice, advice.best),
        "by_number": [_option_tree(advice, one) for one in advice.by_number],
        "policies": [_option_tree(advice, one) for one in advice.others],
    }


def _option_tree(advice: Advice, option: Option) -> dict[str, object]:
    """The keys are the same for every list; null is "not known"."""
    return {
        "policy": option.policy,
        "buckets": list(option.buckets),
        "real_elements": option.padding.real_elements,
        "padded_elements": option.padding.padded_elements,
        "waste": option.padding.waste,
        "eager_requests": option.padding.eager_requests,
        "requests_cost": option.steps,
        "captures_cost": option.captures,
        "own_pools_bytes": option.own_pools_bytes,
        "shared_pool_bytes": option.shared_pool_bytes,
        "above_best": advice.above_best(option),
    }
