"""What the CPU model costs: its installation, an operator run, recorded or replayed, memory over many replays, the first 66 cases.

    python benchmarks/model_speed.py [--python PATH] [--rounds 15]

Prints microseconds an operator beside what torch needs for the same on the CPU without the model, as lower quartile and median
over rounds of a thousand operators on 16 numbers, where the kernel is next to nothing; a replay less that kernel. Then the
growth of the process over a second thousand replays of a thousand nodes, and one attempt of each of the 66 cases through the whole
harness, from the moment at which torch is imported. Times are of the processor, which other work on the machine leaves alone;
where it matters the time on the clock stands beside them. The targets are those of the model's design.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from replaydrift.catalogue import read_catalogue
from replaydrift.library import read_library
from replaydrift.progress import PlainProgress
from replaydrift.store import Store
from replaydrift.sweep import Wishes, sweep

ROOT = Path(__file__).parents[1]
GROUPS = (
    "control-flow", "capture-aware", "dynamic-scalar", "hidden-scalar", "rng", "dynamic-shape", "host-state", "dynamic-input",
    "autocast-cache", "freed-cuda-input", "freed-cpu-input", "output-reuse", "shared-pool", "replay-order", "library-stream",
    "module-hooks", "pinned", "parallel-replay", "first-bad-layer",
)  # fmt: skip
INSTALL = """
import json, time
import torch
begun = time.perf_counter(), time.process_time()
import replaydrift.model
replaydrift.model.install()
print(json.dumps([time.perf_counter() - begun[0], time.process_time() - begun[1]]))
"""

OPERATORS = """
import json, resource, sys, time
import torch

torch.set_num_threads(1)
ROUNDS, OPERATORS = int(sys.argv[1]), 1000

def rounds(work):
    work()
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) / OPERATORS * 1e6)
    return times

def new(x):
    for _ in range(OPERATORS):
        x + 1.0

def in_place(x):
    for _ in range(OPERATORS):
        x.add_(1.0)

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

WORKS = {"x + 1": new, "x.add_(1)": in_place}
host = torch.ones(16)
found = {name: {"torch": rounds(lambda: work(host))} for name, work in WORKS.items()}
import replaydrift.model

replaydrift.model.install()
x = torch.ones(16, device="cuda")
for name, work in WORKS.items():
    graphs = []

    def eager():
        work(x)
        torch.cuda.synchronize()

    def capture():
        graphs.clear()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work(x)
        graphs.append(graph)

    def replay():
        graphs[0].replay()
        torch.cuda.synchronize()

    found[name] |= {how.__name__: rounds(how) for how in (eager, capture, replay)}
    sizes = []
    for _ in range(2):
        for _ in range(1000):
            replay()
        sizes.append(resident())
    found[name]["growth"] = (sizes[1] - sizes[0]) / 2**20
print(json.dumps(found))
"""


def in_python(python: str, program: str, *arguments: str) -> Any:
    """What a program prints as JSON, run beside torch."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, "-c", program, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


class Timer(PlainProgress):
    """Says nothing, and remembers when torch was imported."""

    def __init__(self) -> None:
        super().__init__(lambda _line: None)
        self.imported = 0.0

    def doing(self, what: str) -> None:  # noqa: ARG002
        """The last thing that is done before the attempts is looking at the machine, once torch is imported."""
        self.imported = time.perf_counter()


def cases_s(python: str) -> tuple[float, float, int]:
    """Seconds on the clock after torch's import for one attempt of each of the cases, of the processor with it, and how many there are."""
    library = read_library(ROOT / "cases")
    cases = [case for case in library.cases if case.group in GROUPS]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder, Timer() as timer:
        sweep(Wishes(python=python, engine="model", attempts=1), read_catalogue(library), cases, Store(Path(folder)), timer)
        ended = time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended - timer.imported, processor, len(cases)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with torch (default: this one)")
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    installs = [in_python(asked.python, INSTALL) for _ in range(3)]
    clock, processor = (min(times) for times in zip(*installs, strict=True))
    print(f"installation, best of 3        {clock:7.2f} s on the clock, {processor:.2f} s of the processor (target: at most 1 s)")
    print("                              quartile   median")
    for name, found in in_python(asked.python, OPERATORS, str(asked.rounds)).items():
        times = {how: statistics.quantiles(found[how], n=4)[:2] for how in ("torch", "eager", "capture", "replay")}
        print(f"{name:10} torch on the CPU    {times['torch'][0]:8.2f} {times['torch'][1]:8.2f} us")
        print(f"{name:10} eager               {times['eager'][0]:8.2f} {times['eager'][1]:8.2f} us (target: at most 60 us)")
        print(f"{name:10} capture             {times['capture'][0]:8.2f} {times['capture'][1]:8.2f} us (target: at most 100 us)")
        replay = [whole - kernel for whole, kernel in zip(times["replay"], times["torch"], strict=True)]
        print(f"{name:10} replay, beside it   {replay[0]:8.2f} {replay[1]:8.2f} us (target: at most 15 us)")
        print(f"{name:10} growth              {found['growth']:8.2f} MiB over a thousand replays of a thousand nodes (target: none)")
    clock, processor, count = cases_s(asked.python)
    print(f"{count} cases, one attempt each  {clock:9.2f} s on the clock, {processor:.2f} s of the processor with torch's import")
    print("                              (target: at most 15 s on the clock, on two cores)")


if __name__ == "__main__":
    main()
