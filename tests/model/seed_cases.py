"""Runs the first 66 cases of the library on the model as it is in this process, each in a fork, and judges them by hand-made expectations."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import sys
import unittest
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cases"))


@cache
def cases() -> dict[str, Any]:
    """The cases by name: the case, and how the model is to run it."""
    from expected_values import EXPECTED

    from replaydrift.catalogue import read_catalogue
    from replaydrift.library import read_library

    catalogue = read_catalogue(read_library(ROOT / "cases"))
    return {case.name: (case, catalogue.notes[case.name].model) for case in catalogue.cases if case.name in EXPECTED}


def _run(path: Path, function: str, how: Any) -> tuple[list[tuple[str, Any]], str]:
    """What a function of a case file yields, and how it ends."""
    import replaydrift.model
    from replaydrift.child.encoding import encode_yield

    replaydrift.model.set_scale(how.scale, memory=True)
    spec = importlib.util.spec_from_file_location("case", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yielded = []
    try:
        generator = getattr(module, function)(**dict(how.options))
        with contextlib.suppress(StopIteration):
            while True:
                yielded.append(encode_yield(next(generator)))
    except unittest.SkipTest:
        return yielded, "skipped"
    except Exception as error:  # noqa: BLE001 - whatever a case raises is its outcome
        chain, texts = error, []
        while chain is not None:
            texts.append(str(chain))
            chain = chain.__cause__ or chain.__context__
        return yielded, "raised: " + " | ".join(texts)
    return yielded, "finished"


def forked(work: Any) -> Any:
    """What `work()` returns in a copy of this process; None where the copy ended without a word."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        with os.fdopen(send, "wb") as pipe:
            pickle.dump(work(), pipe)
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


def flipped() -> list[str]:
    """The cases that do not come to what was worked out for this torch: outcome, or values where those are no matter of luck."""
    import torch
    from expected_values import expected

    from replaydrift.strip import MISSING, is_correct, pair
    from replaydrift.values import equal

    major, minor = torch.__version__.split(".")[:2]
    found = []
    right: dict[tuple[str, str], Any] = {}
    for name, (case, how) in cases().items():
        outcome, values = expected(name, (int(major), int(minor)))
        key = case.group, case.reference
        if key not in right:
            right[key] = forked(lambda case=case, how=how: _run(case.path, case.reference, how)) or ([], "crashed")
        yielded, end = forked(lambda case=case, how=how: _run(case.path, case.function, how)) or ([], "crashed")
        kind, _, text = outcome.partition(": ")
        if kind in ("raised", "skipped"):
            holds = end.startswith(kind) and text in end
            strip = [] if kind == "skipped" else pair(yielded, right[key][0], whole=False)
        else:
            strip = pair(yielded, right[key][0], whole=end == "finished")
            holds = end == right[key][1] == "finished" and is_correct(strip) == (kind == "correct")
        observed = [cell.observed for cell in strip if cell.observed is not MISSING]
        tolerance = 1e-4 if case.group == "first-bad-layer" else 0.0
        if values is not None:
            holds = holds and len(observed) == len(values) and all(equal(a, b, tolerance) for a, b in zip(observed, values, strict=True))
        if not holds:
            found.append(name)
    return found


def main(controls: list[str]) -> None:
    """Print, for each way to break the model, its name and the cases that flip."""
    import gc
    import json
    import warnings

    import broken
    import torch
    import torch._dynamo  # what several cases import on their way

    import replaydrift.model

    warnings.simplefilter("ignore")
    replaydrift.model.install()
    cases()
    gc.collect()
    gc.freeze()
    print(json.dumps(torch.__version__), flush=True)
    for name in controls:

        def broken_run(name: str = name) -> list[str]:
            getattr(broken, name)()
            return flipped()

        print(json.dumps([name, forked(broken_run)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
