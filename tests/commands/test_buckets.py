"""`replaydrift buckets TRACE.csv`; stored costs in here are synthetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replaydrift.cli import cli
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.lengths import trace as made
from replaydrift.costs.policies import buckets_of, padding
from replaydrift.costs.records import Block, Costs, Subject, Visit
from replaydrift.records import Environment


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Lengths from 1 to 100, each once."""
    path = tmp_path / "trace.csv"
    path.write_text("length\n" + "\n".join(map(str, range(1, 101))) + "\n")
    return path


def run(trace: Path, *more: str) -> Result:
    """What the command says about the trace, with a store beside it."""
    return CliRunner().invoke(cli, ["buckets", str(trace), "--results", str(trace.parent / "results"), *more])


def words(result: Result) -> str:
    """Its words with line breaks taken out."""
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def store(trace: Path) -> None:
    """Synthetic costs: a request 10 µs + its size, ten times that eagerly; a bucket 3 ms and 2 MiB."""
    lengths = made("requests")
    subjects = {}
    for policy in ("eager", "pad-to-max", "even-4", "powers-of-two"):
        buckets = buckets_of(policy, lengths)
        done = padding(lengths, buckets)
        us = (10 * len(lengths) + done.padded_elements) * (1 if buckets else 10)
        metrics = {"trace_gpu_ms": (us / 1000,), "padded_elements": (done.padded_elements,)}
        if buckets:
            metrics |= {"trace_capture_ms": (3.0 * len(buckets),), "own_pools_reserved_bytes": (2**24 + 2**21 * len(buckets),)}
        for name in ("requests", "uniform") if policy == "eager" else ("requests",):
            subjects[f"bucketing/decoder/{name}/{policy}"] = Subject("v1", metrics)
    subjects["bucketing/decoder/uniform/eager"] = Subject(
        "v1", {"trace_gpu_ms": ((10 * 256 + sum(made("uniform"))) / 100,), "padded_elements": (sum(made("uniform")),)},
    )  # fmt: skip
    place = Environment("h200", "cuda", "2.13.0+cu130", {"gpu": {"name": "NVIDIA H200"}})
    visit = Visit(1, "2026-12-01T09:00:00+00:00", 30.0, subjects)
    CostStore(trace.parent / "results").write(Costs(Block("one", "measure", ("2.13.0+cu130",)), place, (visit,)))


def test_nothing_is_stored(trace: Path) -> None:
    """Then padding is what is minimised, and it says plainly that no time stands behind it."""
    text = words(run(trace, "--buckets", "4"))
    assert "100 requests of 100 lengths, 1 to 100" in text
    assert "No costs are stored" in text
    assert "nothing below is a time" in text
    assert "Advised: 4 buckets, the number asked for 25 50 75 100 padding waste 19.2%" in text
    assert "pad-to-max 1 49.5% +60.0%" in text
    assert "powers-of-two 8 " in text


def test_prices_as_given(trace: Path) -> None:
    """With --linear and --capture-ms the number of buckets is the one that pays."""
    text = words(run(trace, "--linear", "10,1", "--capture-ms", "0.5"))
    assert "A request costs 10 + 1 × length µs, as given. A bucket costs 0.5 ms, as given." in text
    assert "Advised: 3 buckets, the number at which the requests and the captures together cost least" in text
    assert "1.5 ms once, for warm-up and capture" in text
    more = words(run(trace, "--linear", "10,1", "--capture-ms", "0.5", "--repeats", "64"))
    assert "Advised: 25 buckets" in more
    assert "64 times" in more


def test_stored_prices(trace: Path) -> None:
    """What a machine measured is used where it is there, with where it came from, eager code and memory."""
    store(trace)
    text = words(run(trace, "--repeats", "100"))
    assert "(NVIDIA H200, torch 2.13.0+cu130, block one)" in text
    assert "nothing below is a time" not in text
    assert "memory 26 MiB with a pool for each bucket; one shared pool, captured largest first, takes 2 MiB or a little more" in text
    assert "eager 0 0.0% 60.5 ms 0 ms +" in text
    assert "top-3-eager 3 " in text
    assert "nothing below is a time" not in words(run(trace, "--linear", "10,1"))


def test_a_curve_of_ones_own(trace: Path) -> None:
    """A model of one's own is priced by what one measured of it, store or not."""
    store(trace)
    curve = trace.with_name("curve.csv")
    curve.write_text("length,step_us,capture_ms\n10,20,0.5\n110,120,0.5\n")
    text = words(run(trace, "--curve", str(curve)))
    assert "says of lengths 10, 110." in text
    assert "Advised: 3 buckets" in text
    assert "give one of them" in run(trace, "--curve", str(curve), "--linear", "1,1").output


def test_json(trace: Path) -> None:
    """A program gets each list with its sizes, waste and distance from the best; what is not known is null."""
    tree = json.loads(run(trace, "--buckets", "2", "--json").output)
    assert (tree["requests"], tree["longest"], tree["unit"]) == (100, 100, "elements")
    assert tree["best"]["buckets"] == [50, 100]
    assert tree["best"]["captures_cost"] is None
    assert tree["best"]["padded_elements"] == 7500
    pad = next(row for row in tree["policies"] if row["policy"] == "pad-to-max")
    assert pad["above_best"] == pytest.approx(10000 / 7500 - 1)
    assert [len(row["buckets"]) for row in tree["by_number"]] == [1, 2]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--linear", "10"), "found '10', expected two numbers of at least 0"),
        (("--linear", "10,-1"), "expected two numbers"),
        (("--linear", "nan,1"), "expected two numbers"),
        (("--capture-ms", "3"), "say --linear A,B too, or --curve CURVE.csv"),
        (("--buckets", "0"), "0 is not in the range"),
    ],
)
def test_options_that_cannot_be(trace: Path, more: tuple[str, ...], says: str) -> None:
    """A usage error says what was expected."""
    result = run(trace, *more)
    assert result.exit_code == 2
    assert says in result.output


def test_a_machine_without_costs(trace: Path) -> None:
    """Prices that were asked for and are not there are an error, not padding in their place."""
    result = run(trace, "--machine", "h200")
    assert result.exit_code != 0
    assert "no costs of traces through 'decoder' are stored of machine 'h200'" in str(result.exception)
