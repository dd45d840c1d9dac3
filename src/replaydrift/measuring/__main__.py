"""`python -m replaydrift.measuring`: one visit. It reads a request as JSON on standard input and prints a line of JSON a subject.

Whatever else prints goes to standard error. The last line, `end`, has the state of the GPU and the facts of its environment. Without it the
visit failed: standard error says why, and the exit code is not 0.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from typing import Any, Final

from replaydrift.child import environment
from replaydrift.measuring import gpu
from replaydrift.measuring.visit import Visit

_MAY_NOT_PRELOAD: Final = "without-preloading"


def main() -> int:
    """The exit code: 0 after the last line, 2 where nothing could be measured."""
    answers = os.dup(1)
    os.dup2(2, 1)
    text = sys.stdin.read()
    request: dict[str, Any] = json.loads(text)
    try:
        importlib.import_module("torch")
        facts = environment.gather_apart(request["engine"])
        if request["engine"] == "model":
            model = importlib.import_module("replaydrift.model")
            model.install()
            facts |= environment.model_facts(model)
    except Exception as error:  # noqa: BLE001 - whatever torch or the model raise, the visit cannot be made
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if request.get("cases") and _MAY_NOT_PRELOAD not in sys.argv:
        _preload(text, answers)
    # Objects that exist now live as long as this process: left out of collections, their pages stay shared with every fork.
    gc.collect()
    gc.freeze()

    def say(line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(answers, data) :]

    visit = Visit(request, say)
    visit.run()
    say({"end": {**gpu.summary(visit.readings), "environment": facts}})
    return 0


def _preload(text: str, answers: int) -> None:
    """Import what many cases import on their way; where that touches CUDA, begin anew as a program that does not."""
    if environment.preload():
        return
    request = os.memfd_create("request")
    os.write(request, text.encode())
    os.lseek(request, 0, os.SEEK_SET)
    os.dup2(request, 0)
    os.dup2(answers, 1)
    os.execv(sys.executable, [*sys.orig_argv, _MAY_NOT_PRELOAD])  # noqa: S606 - this very program


if __name__ == "__main__":
    sys.exit(main())
