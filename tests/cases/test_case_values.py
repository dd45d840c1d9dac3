"""Each case on the CPU model, in a process of its own, against what was worked out by hand."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gathered_values import EXPECTED, expected

from replaydrift.catalogue import read_catalogue
from replaydrift.library import read_library
from replaydrift.strip import MISSING, Strip, is_correct, pair
from replaydrift.values import equal

FOLDER = Path(__file__).parents[2] / "cases"
CATALOGUE = read_catalogue(read_library(FOLDER))

# Runs in one interpreter: torch and the model once, then a fork for each function, one JSON line each.
PROGRAM = """
import importlib.util, json, os, sys, unittest
import torch
import torch._dynamo  # Optimizers import it, each for itself, which takes seconds.
import replaydrift.model
from replaydrift.child.encoding import encode_yield
replaydrift.model.install()

def show(path, function, options, scale):
    replaydrift.model.set_scale(scale)
    spec = importlib.util.spec_from_file_location("case", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yielded, end = [], "finished"
    try:
        generator = getattr(module, function)(**options)
        while True:
            yielded.append(encode_yield(next(generator)))
    except StopIteration:
        pass
    except unittest.SkipTest as skip:
        end = f"skipped: {skip}"
    except BaseException as error:
        texts = []
        while error is not None:
            texts.append(f"{type(error).__name__}: {error}")
            error = error.__cause__ or error.__context__
        end = "raised: " + " | ".join(texts)
    return yielded, end

for task in json.loads(sys.stdin.read()):
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        with os.fdopen(send, "w") as pipe:
            json.dump(show(*task), pipe)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    print("RESULT", text or '[[], "crashed"]', flush=True)
print("RELEASE", json.dumps(torch.__version__))
"""

Shown = tuple[list[tuple[str, Any]], str]


@pytest.fixture(scope="module")
def shown() -> tuple[dict[tuple[str, str], Shown], tuple[int, int]]:
    """What each function of the library yielded, and how it ended, by group and function; and torch's release."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    if importlib.util.find_spec("replaydrift.model") is None:
        pytest.skip("needs the CPU model")
    tasks = {}
    for case in CATALOGUE.cases:
        how = CATALOGUE.notes[case.name].model
        for function in (case.reference, case.function):
            tasks[case.group, function] = (str(case.path), function, dict(how.options), how.scale)
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(list(tasks.values())), capture_output=True, text=True, timeout=280, check=False
    )
    lines = program.stdout.splitlines()
    results = [json.loads(line.removeprefix("RESULT ")) for line in lines if line.startswith("RESULT ")]
    assert len(results) == len(tasks), program.stderr[-2000:]
    release = next(json.loads(line.removeprefix("RELEASE ")) for line in lines if line.startswith("RELEASE "))
    major, minor = release.split(".")[:2]
    return dict(zip(tasks, [(list(map(tuple, yielded)), end) for yielded, end in results], strict=True)), (int(major), int(minor))


def _strip(shown: dict[tuple[str, str], Shown], name: str) -> Strip:
    case = next(case for case in CATALOGUE.cases if case.name == name)
    seen, end = shown[case.group, case.function]
    right, right_end = shown[case.group, case.reference]
    assert right_end == "finished", f"the reference of {name} {right_end}"
    return pair(seen, right, whole=end == "finished")


def _evidence(shown: dict[tuple[str, str], Shown], name: str, step: str = "address") -> list[Any]:
    case = next(case for case in CATALOGUE.cases if case.name == name)
    return [value for seen, value in shown[case.group, case.function][0] if seen == step]


def _observed(strip: Strip) -> list[Any]:
    return [cell.observed for cell in strip if cell.observed is not MISSING]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_on_the_model(name: str, shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """A case comes to the outcome, and shows the values, that were worked out for this release."""
    results, release = shown
    outcome, values = expected(name, release)
    group, _, function = name.partition("/")
    _, end = results[group, function.replace("-", "_")]
    kind, _, text = outcome.partition(": ")
    if kind in ("raised", "skipped"):
        assert end.startswith(kind), end
        assert text in end
    else:
        assert end == "finished"
    if kind == "skipped":
        return
    strip = _strip(results, name)
    if kind != "raised":
        assert is_correct(strip) == (kind == "correct"), _observed(strip)
    if values is not None:
        observed = _observed(strip)
        assert len(observed) == len(values), observed
        tolerance = 1e-4 if group == "first-bad-layer" else 0.0
        assert all(equal(left, right, tolerance) for left, right in zip(observed, values, strict=True)), observed


def test_blocks_that_are_shared(shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """The scratch of graph 1 lies where the output of graph 2 does, one block of 512 bytes before its own output."""
    for name in ("shared-pool/bug", "shared-pool/fix-capture-order", "shared-pool/fix-read-immediately"):
        (address,) = _evidence(shown[0], name)
        assert address["scratch of graph 1"] == address["output of graph 2"]
        assert address["output of graph 1"] == address["scratch of graph 1"] + 512
    (address,) = _evidence(shown[0], "shared-pool/fix-separate-pools")
    assert address["scratch of graph 1"] != address["output of graph 2"]


def test_a_freed_block_is_given_to_the_next_tensor(shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """The random tensor gets the block of the dropped input, and another block where the input is kept."""
    (address,) = _evidence(shown[0], "freed-cuda-input/bug")
    assert address["read by the graph"] == address["other tensor"]
    (address,) = _evidence(shown[0], "freed-cuda-input/fix")
    assert address["read by the graph"] != address["other tensor"]


def test_a_dropped_pinned_block_goes_to_the_next_tensor(shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """The first new pinned tensor lies in the block that the graph copies from where that was dropped, and elsewhere where it is kept."""
    for name, reused in (("freed-cpu-input/bug-pinned", [True, False]), ("freed-cpu-input/fix-pinned-keep-alive", [False, False])):
        addresses = _evidence(shown[0], name)
        assert [address["read by the graph"] == address["new pinned tensor"] for address in addresses] == reused


def test_an_input_that_moves(shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """At the first replay the rebound input lies elsewhere than the graph reads; written in place it stays put."""
    assert _evidence(shown[0], "dynamic-input/bug")[0]["lr"] != _evidence(shown[0], "dynamic-input/bug")[0]["read by the graph"]
    assert all(address["lr"] == address["read by the graph"] for address in _evidence(shown[0], "dynamic-input/fix"))


def test_values_that_are_luck_are_still_bounded(shown: tuple[dict[tuple[str, str], Shown], tuple[int, int]]) -> None:
    """Luck has its limits: which steps can be right, and which sizes are chosen, does not depend on it."""
    results, _ = shown
    buckets = _evidence(results, "dynamic-shape/fix-bucket", "bucket")
    assert buckets == [4, 8, 8]
