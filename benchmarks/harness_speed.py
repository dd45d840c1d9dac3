"""What the harness adds to an attempt, beyond the fork of a process that has imported torch.

    python benchmarks/harness_speed.py [--python PATH] [--attempts 60]

Prints, in milliseconds, the time of a bare fork that exits at once, of an attempt of an empty case through the whole harness
(driver, server, pipes, journal on disk) less the case's own time, and the difference. Each as the lower quartile and the median: on a
machine with other work the lower quartile is the one to read. The target is at most 20 ms.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replaydrift.journal import Journal
from replaydrift.launch import Server

CASE = """
def empty():
    yield "replay", 1
"""

BARE_FORK = """
import gc, os, sys, time
import torch
gc.collect(); gc.freeze()
times = []
for _ in range(int(sys.argv[1])):
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    times.append((time.perf_counter() - begun) * 1000)
print(*times)
"""


def bare_forks_ms(python: str, attempts: int) -> list[float]:
    """The time of each fork and its exit, in a Python that has imported torch."""
    done = subprocess.run([python, "-c", BARE_FORK, str(attempts)], check=True, capture_output=True, text=True)
    return [float(text) for text in done.stdout.split()]


def attempts_ms(python: str, attempts: int) -> list[float]:
    """The time of each attempt of an empty case less what the case itself took, one after the other."""
    times = []
    with tempfile.TemporaryDirectory() as folder, Server(python) as server, Journal(Path(folder) / "journal", {}) as journal:
        path = Path(folder) / "empty.py"
        path.write_text(CASE)
        server.hello()
        server.prepare("cuda", facts=False)
        for number in range(attempts):
            begun = time.perf_counter()
            server.run(id=number, path=str(path), function="empty", options={}, scale=1.0, limit_s=60.0, memory_bytes=2**40)
            ended = []
            while not ended:
                ended = server.messages(1.0)
            report = ended[0]["report"]
            assert report["how"] == "finished", report
            journal.add("empty", number, report)
            times.append((time.perf_counter() - begun) * 1000 - report["duration_ms"])
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with torch (default: this one)")
    parser.add_argument("--attempts", type=int, default=60)
    asked = parser.parse_args()
    forks = statistics.quantiles(bare_forks_ms(asked.python, asked.attempts), n=4)[:2]
    whole = statistics.quantiles(attempts_ms(asked.python, asked.attempts), n=4)[:2]
    print("                quartile   median")
    print(f"bare fork       {forks[0]:8.2f} {forks[1]:8.2f} ms")
    print(f"whole attempt   {whole[0]:8.2f} {whole[1]:8.2f} ms")
    print(f"harness adds    {whole[0] - forks[0]:8.2f} {whole[1] - forks[1]:8.2f} ms (target: at most 20 ms)")


if __name__ == "__main__":
    main()
