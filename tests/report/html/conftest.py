"""A small library with two machines and four releases, and the site that is made of it; some of what cases said is hostile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from making import environment
from measured import synthetic_costs

from replaydrift.agreement import agreement_of
from replaydrift.catalogue import read_catalogue
from replaydrift.explanations import Explanation
from replaydrift.library import read_library
from replaydrift.outcome import Outcome
from replaydrift.records import Attempt, CaseRecord, Raised, Warned
from replaydrift.releases import read_table
from replaydrift.report import html
from replaydrift.report.overview import Overview, overview
from replaydrift.store import Store
from replaydrift.strip import Cell

RELEASES = ("2.11.0+cu130", "2.12.1+cu130", "2.13.0+cu130", "2.14.1+cu130")
HOSTILE = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">\u202e\x1b[31m"

POOL = '''"""Two graphs that share a memory pool.

A graph replays into the addresses it was captured with: `pool=` may hand out a block twice.

- capture order is safe
- any other is not

Mechanism: frozen pointer
Source: https://example.org/pool
"""

import torch

CONSTANT = "<b>not bold</b>"


def _helper(x):
    return x if CONSTANT else None


def eager():
    """8 and 4."""
    yield "replay", _helper(8)


def bug():
    """Graph 1 writes over what graph 2 left."""
    yield "replay", _helper(3)


def fix_capture_order():
    """In the order of capture both are right."""
    yield "replay", _helper(8)
'''
RNG = '''"""Random numbers.

Mechanism: frozen choice
"""


def eager():
    yield "replay", True


def custom_unregistered():
    """A generator of your own gives fresh numbers."""
    yield "replay", True
'''
GROUPS = """schema = 1
[sources.page]
title = "The page"
link = "https://example.org/page"
[sources.seed]
title = "The seed"
[groups.shared-pool]
title = "Graphs that share a pool"
[groups.shared-pool.cases.bug]
meaning = "Replay in another order than captured and `y2` is gone."
claims = [{ source = "page", says = "wrong", observed = [8, 3], link = "javascript:alert(1)" }]
[groups.shared-pool.cases.fix-capture-order]
claims = [{ source = "page", says = "correct", note = "no output printed" }]
[groups.rng]
title = "Random numbers"
"""
WHY = "A generator makes its per-capture state on first use."


def attempt(text: str, cells: tuple[tuple[str, object, object], ...] = (), **more: object) -> Attempt:
    """An attempt with this outcome and these (step, observed, correct)."""
    outcome = Outcome.parse(text)
    more.setdefault("chain", (Raised(*outcome.error, "rng.py:14"),) if outcome.error else ())
    return Attempt(outcome, tuple(Cell(*cell) for cell in cells), **more)


def record(case: str, kind: str, *attempts: Attempt, version: str = "v1", timing: bool = False) -> CaseRecord:
    """A record; one attempt alone stands for three alike."""
    return CaseRecord(case, kind, version, attempts * 3 if len(attempts) == 1 else attempts, timing=timing)


STRIP = (("warmup", 8, 8), ("capture", 4, 4), ("replay", 3, 4))
RIGHT = (("warmup", 8, 8), ("capture", 4, 4), ("replay", 4, 4))
SHARED = (("address", {"scratch of graph 1": "+0x0", "y1": "+0x200", "y2": "+0x0"}), ("bucket", 8))


def records_of(release: str, model: bool) -> list[CaseRecord]:
    """What one machine saw on one release: a fix that goes silently wrong on the last, an error reworded and then gone."""
    number = RELEASES.index(release)
    rules = ("pageable-copy-refused",) if model else ()
    said = ("RuntimeError: first wording", "RuntimeError: other wording")[number > 0]
    raised = attempt(
        f"raised:{said}", chain=(Raised("AcceleratorError", "operation failed\nmore lines", "rng.py:14"), Raised(*said.split(": ")))
    )
    quiet = attempt("correct", (("replay", True, True),), warnings=(Warned("stderr", f"deprecated {HOSTILE}", 5),))
    return [
        record("shared-pool/bug", "bug", attempt("wrong", STRIP, evidence=SHARED, stdout=HOSTILE, rules=rules)),
        record("shared-pool/fix-capture-order", "fix", attempt("wrong", STRIP) if number == 3 else attempt("correct", RIGHT), timing=model),
        record(
            "rng/custom-unregistered", "behaviour",
            raised if number < 3 else quiet,
        ),
        record("gone/bug", "bug", attempt("correct"), attempt("wrong", (("replay", HOSTILE, HOSTILE + "."),)), attempt("correct")),
    ]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """The site, and what it was made of."""

    folder: Path
    facts: Overview
    store: Store

    def page(self, name: str) -> str:
        """The text of one of its files."""
        return (self.folder / name).read_text(encoding="utf-8")


def make(root: Path, machines: tuple[str, ...] = ("h200", "model")) -> Made:
    """The site in `root/reports`."""
    library = root / "cases"
    library.mkdir(parents=True)
    for name, text in (("shared_pool.py", POOL), ("rng.py", RNG), ("groups.toml", GROUPS)):
        (library / name).write_text(text, encoding="utf-8")
    catalogue = read_catalogue(read_library(library))
    versions = {case.name: case.version for case in catalogue.cases}
    store = Store(root / "results")
    for machine in machines:
        for release in RELEASES:
            model = machine == "model"
            place = environment(release, machine, "CPU model" if model else "NVIDIA H200", "model" if model else "cuda", note=HOSTILE)
            place = replace(place, note=HOSTILE)
            store.write(place, [replace(one, version=versions.get(one.case, "v1")) for one in records_of(release, model)])
    entry = Explanation(
        "rng/custom-unregistered", "*", RELEASES[2], RELEASES[3], "fixed", "raised:RuntimeError: other wording", "correct", WHY, "https://example.org/why",
    )  # fmt: skip
    facts = overview(store, catalogue, [entry])
    costs = synthetic_costs(machines)
    html.write(facts, root / "reports", costs, agreement_of(store.sweeps()) or None)
    return Made(root / "reports", facts, store)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The site of both machines, made once."""
    return make(tmp_path_factory.mktemp("site"))


@pytest.fixture
def make_site(tmp_path: Path) -> Callable[..., Made]:
    """A way to make another."""
    return lambda name="site", **more: make(tmp_path / name, **more)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 20 releases and 300 cases."""
    root = tmp_path_factory.mktemp("large")
    (root / "cases").mkdir()
    body = 'def eager():\n    yield "replay", 1\n' + "".join(
        f'\n\ndef {kind}_with_a_long_name_{number}():\n    """Something one may expect."""\n    yield "replay", 1\n'
        for number, kind in enumerate(("bug", "fix") * 5)
    )
    for group in range(30):
        (root / "cases" / f"group_of_cases_{group}.py").write_text(f'"""Group {group}.\n\nMechanism: frozen choice\n"""\n\n\n{body}')
    catalogue = read_catalogue(read_library(root / "cases"))
    table = read_table().entries[-20:]
    store = Store(root / "results")
    outcomes = ("correct", "wrong", "raised:RuntimeError: CUDA error: operation not permitted when stream is capturing")
    for column, entry in enumerate(table):
        attempts = [(Attempt(Outcome.parse(text)),) * 3 for text in outcomes]
        cases = [
            CaseRecord(case.name, case.kind, case.version, attempts[(row + column // (3 + row % 7)) % 3])
            for row, case in enumerate(catalogue.cases)
        ]
        store.write(environment(f"{entry.version}+{entry.default_build}"), cases)
    html.write(overview(store, catalogue), root / "reports")
    return root / "reports"
