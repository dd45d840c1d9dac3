"""Costs in the check, on synthetic numbers: what gates, what explains it, the exit codes, and every form of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from making import environment, record
from toybox import SOURCE, environ

from replaydrift.catalogue import read_catalogue
from replaydrift.cli import cli
from replaydrift.costs.cost_store import CostStore
from replaydrift.costs.records import Block, Costs, Subject, Visit
from replaydrift.library import read_library
from replaydrift.report.html.feed import atom, changes_json
from replaydrift.report.markdown import write_index
from replaydrift.report.overview import overview
from replaydrift.store import Store

OLD, NEW = "2.14.1+cu130", "2.15.0+cu132"
NOISE = (1.0, 1.003, 0.998, 1.001, 0.999, 1.002)
WILD = (1.0, 1.5, 0.8, 1.3, 0.7, 1.2)
# A chain of a thousand kernels, in numbers that nobody measured.
CHAIN = {"replay_gpu_us": 1115.0, "capture_ms": 7.7}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own: one case, two releases on which it behaves alike, no costs."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "g.py").write_text('def eager():\n    yield "replay", 1\n\n\ndef bug():\n    yield "replay", 1\n')
    monkeypatch.chdir(tmp_path)
    for release in (OLD, NEW):
        Store(Path("results")).write(environment(release), [record("wrong", case="g/bug")])
    return tmp_path


def put(release: str, factors: Mapping[str, float] | None = None, noise=NOISE, name: str = "chain/1000", block: str = "one", **counts: int) -> None:
    """Store the costs of one release in six visits of a block of both."""
    order = (OLD, NEW, NEW, OLD) * 3
    visits = []
    for number, factor in zip([at for at, other in enumerate(order, 1) if other == release], noise, strict=True):
        metrics = {metric: (value * factor * (factors or {}).get(metric, 1.0),) for metric, value in CHAIN.items()}
        metrics |= {metric: (value,) for metric, value in counts.items()}
        visits.append(Visit(number, "", 30.0, {name: Subject("v1", metrics)}))
    cuda = {OLD: "13.0", NEW: "13.2"}[release]
    where = replace(environment(release), facts={"gpu": {"name": "NVIDIA H200", "driver": "580.1"}, "torch": {"cuda": cuda}})
    CostStore(Path("results")).write(Costs(Block(block, "upgrade", order), where, tuple(visits)))


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of the command line."""
    result = CliRunner().invoke(cli, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


CHECK = ("check", "2.14.1", "2.15.0")


def test_without_costs_nothing_is_said_of_them(home: Path) -> None:
    """Where no costs are stored, no form of a check has a word about them."""
    for form in ((), ("--json",), ("--markdown",), ("--junit",)):
        code, text = run(*CHECK, *form)
        assert code == 0
        assert "cost" not in text.lower()


def test_a_check_without_costs_is_quick(home: Path) -> None:
    """Scipy, which takes seconds to import, is left alone until there are costs to compare."""
    code = (
        "import atexit, sys\nfrom replaydrift.cli import main\natexit.register(lambda: print('scipy' in sys.modules))\n"
        f"sys.argv = {['replaydrift', *CHECK]!r}\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environ(PYTHONPATH=str(SOURCE)), capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False"
    assert "Nothing unexplained changed." in ran.stdout


def test_equal_costs_pass(home: Path) -> None:
    """Costs that are shown to be the same pass, and the check says how many and from which block."""
    put(OLD, nodes=1000)
    put(NEW, nodes=1000)
    code, text = run(*CHECK)
    assert code == 0
    assert "Nothing unexplained changed." in text
    assert "Block one, 6 and 6 processes; 2 times in the gate; CUDA 13.0 → 13.2." in text
    assert "3 cost(s) are the same within their margins." in text


def test_a_slower_replay_fails_until_it_is_explained(home: Path) -> None:
    """Five percent more GPU time fails with ratio, interval and both toolkits; `accept` explains it, and it rots once it is gone."""
    put(OLD)
    put(NEW, {"replay_gpu_us": 1.05})
    code, text = run(*CHECK)
    assert code == 1
    assert "Something changed that nobody has explained." in text
    assert "chain/1000 replay_gpu_us" in text
    assert "1,116 µs → 1,171 µs, × 1.050 (1.047 to 1.053); CUDA 13.0 → 13.2" in text
    assert "replaydrift accept 2.14.1+cu130 2.15.0+cu132 --machine h200 --case chain/1000" in text
    assert run("accept", "2.14.1", "2.15.0", "--case", "chain/1000", "--why", "a kernel more")[0] == 0
    code, text = run(*CHECK)
    assert code == 0
    assert "Why: a kernel more" in text
    put(NEW, {"replay_gpu_us": 1.12})
    assert run(*CHECK)[0] == 0
    put(NEW, {"replay_gpu_us": 0.9})
    assert run(*CHECK)[0] == 1
    put(NEW)
    code, text = run(*CHECK)
    assert code == 1
    assert "Explanations that match nothing any more" in text
    assert run(*CHECK, "--no-costs")[0] == 0


def test_a_count_is_explained_by_its_numbers(home: Path) -> None:
    """An entry for a count holds for these two numbers and no others."""
    put(OLD, nodes=1000)
    put(NEW, nodes=1001)
    code, text = run(*CHECK)
    assert code == 1
    assert "1,000 → 1,001" in text
    assert run("accept", "2.14.1", "2.15.0", "--why", "a node more")[0] == 0
    assert run(*CHECK)[0] == 0
    put(NEW, nodes=1002)
    assert run(*CHECK)[0] == 1


def test_an_undecided_headline_cannot_be_told(home: Path) -> None:
    """Noise that hides the answer to something the gate asks is exit code 2, with the change that would have been seen."""
    put(OLD, noise=WILD)
    put(NEW, noise=WILD[::-1])
    code, text = run(*CHECK)
    assert code == 2
    assert "what it costs cannot be told" in text
    assert "About 2 cost(s) of the gate nothing can be said." in text
    assert "or more would have been seen" in text
    assert run(*CHECK, "--no-costs")[0] == 0


def test_costs_of_one_release_alone_cannot_be_told(home: Path) -> None:
    """As soon as one release has costs, those of the other are missed; what does not compare is said, with what to do."""
    put(OLD)
    code, text = run(*CHECK)
    assert code == 2
    assert f"costs of {OLD} were measured (block 'one'), those of {NEW} were not" in text
    put(NEW, block="two")
    code, text = run(*CHECK)
    assert code == 2
    assert "measured in blocks 'one' and 'two', and times compare within a block" in text
    assert "replaydrift measure" in text


def test_what_the_gate_does_not_ask_fails_nothing(home: Path) -> None:
    """A case whose replay became slower is listed beside its name and passes; with `--cases` only its costs are looked at."""
    put(OLD, name="g/bug")
    put(NEW, {"replay_gpu_us": 1.3}, name="g/bug")
    put(OLD, block="older")
    code, text = run(*CHECK)
    assert code == 0
    assert "g/bug replay_gpu_us  (listed, gates nothing)" in text
    code, text = run(*CHECK, "--cases", "g/bug")
    assert code == 0
    assert "g/bug replay_gpu_us" in text


def test_the_chosen_cases_costs_are_looked_at_alone(home: Path) -> None:
    """With `--cases`, a workload's slower replay is none of that check's business."""
    put(OLD)
    put(NEW, {"replay_gpu_us": 1.3})
    assert run(*CHECK)[0] == 1
    code, text = run(*CHECK, "--cases", "g/bug")
    assert (code, "chain" in text) == (0, False)


def test_a_problem_with_what_the_gate_does_not_ask_fails_nothing(home: Path) -> None:
    """Costs of a case from two blocks do not compare, which is said and passes: the gate does not ask about cases."""
    put(OLD, name="g/bug")
    put(NEW, name="g/bug", block="two")
    code, text = run(*CHECK, "--cases", "g/bug")
    assert code == 0
    assert "times compare within a block" in text
    assert ET.fromstring(run(*CHECK, "--junit")[1]).get("skipped") == "0"


def test_forms_for_programs(home: Path) -> None:
    """JSON, JUnit and Markdown say the same of costs as the text."""
    put(OLD, noise=(*NOISE[:5], 1.5), nodes=1000)
    put(NEW, {"replay_gpu_us": 1.9}, nodes=1001)
    code, text = run(*CHECK, "--json")
    tree = json.loads(text)
    costs = tree["costs"]
    assert code == tree["exit_code"] == 1
    assert (costs["block"], costs["gate"], costs["toolkits"]) == ("one", 2, {"old": "13.0", "new": "13.2"})
    found = {finding["metric"]: finding for finding in costs["findings"]}
    assert {metric: (finding["answer"], finding["news"]) for metric, finding in found.items()} == {
        "nodes": ("changed", True),
        "replay_gpu_us": ("changed", True),
        "capture_ms": ("cannot-tell", False),
    }
    low, high = found["replay_gpu_us"]["interval"]
    assert low < found["replay_gpu_us"]["ratio"] < high
    assert found["capture_ms"]["smallest_found"] > 0.1
    suite = ET.fromstring(run(*CHECK, "--junit")[1])
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    assert len(suite.findall("testcase")) == 4
    assert len(suite.findall("testcase[@classname='costs']/failure")) == 2
    assert len(suite.findall("testcase/skipped")) == 1
    markdown = run(*CHECK, "--markdown")[1]
    assert "| `chain/1000 nodes` | 1,000 → 1,001; CUDA 13.0 → 13.2 | **unexplained** |" in markdown
    assert "### Costs" in markdown


def test_costs_that_one_cause_moved_are_said_once(home: Path) -> None:
    """Of many costs with one explanation six are listed, with how many more and why, once; what nothing explains is listed whole."""
    for release, nodes in ((OLD, 10), (NEW, 11)):
        order = (OLD, NEW)
        subjects = {f"g/case-{number}": Subject("v1", {"nodes": (nodes,)}) for number in range(9)}
        visit = Visit(1 + order.index(release), "", 1.0, subjects)
        CostStore(Path("results")).write(Costs(Block("many", "measure", order), environment(release), (visit,)))
    code, text = run(*CHECK)
    assert code == 1
    assert text.count("10 → 11") == 9
    Path("explanations.toml").write_text(
        f'[[change]]\ncase = "g/*"\nmachine = "h200"\nfrom = "{OLD}"\nto = "{NEW}"\nchange = "cost-changed"\n'
        'before = "nodes"\nafter = "nodes more"\nwhy = "a node more"\nlink = ""\n',
    )
    code, text = run(*CHECK)
    assert (code, text.count("10 → 11"), text.count("Why: a node more")) == (0, 6, 1)
    assert "and 3 more, which --json lists" in text
    markdown = run(*CHECK, "--markdown")[1]
    assert (markdown.count("10 → 11"), "and 3 more" in markdown) == (6, True)


def test_the_report_tells_what_the_check_tells(home: Path) -> None:
    """The page, the feed and the file for programs speak of the costs on arriving at a release, and of what is open."""
    put(OLD, nodes=1000)
    put(NEW, {"replay_gpu_us": 1.05}, nodes=1001)
    report = overview(Store(Path("results")), read_catalogue(read_library(home / "cases")))
    ((check,),) = (machine.arrivals for machine in report.machines)
    assert check.exit_code == 1

    page = write_index(report)
    assert "Costs: Block one, 6 and 6 processes" in page
    assert "- **Costs more or less**: `chain/1000 replay_gpu_us`, `chain/1000 nodes`, the first 1,116 µs → 1,171 µs, × 1.050" in page
    assert "(cause open)" in page
    assert "Costs more or less: 2 costs, 2 of them unexplained" in atom(report)
    assert f"torch {NEW} on h200: 2 cost-changed" in atom(report)
    ((arrival,),) = (machine["arrivals"] for machine in json.loads(changes_json(report))["machines"])
    assert {cost["metric"] for cost in arrival["costs"]["findings"]} == {"replay_gpu_us", "nodes"}
