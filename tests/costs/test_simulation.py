"""The simulations that docs/method.md shows: what stands there is what they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydrift.costs import simulation

METHOD = Path(__file__).resolve().parents[2] / "docs" / "method.md"


@pytest.fixture(scope="module")
def tables() -> list[simulation.Table]:
    """All tables, with fewer rounds than the printed ones."""
    return simulation.tables(rounds=2000, gate_rounds=600)


def printed(header: str) -> dict[str, list[float]]:
    """The rows of the table with this header in docs/method.md, in percent, by their first cell."""
    lines = METHOD.read_text(encoding="utf-8").splitlines()
    rows = {}
    for line in lines[lines.index(header) + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = [float(cell.removesuffix(" %")) for cell in cells]
    return rows


@pytest.mark.parametrize("number", range(4))
def test_the_tables_of_the_method_are_computed(tables: list[simulation.Table], number: int) -> None:
    """Each number in docs/method.md is what a simulation with fewer rounds gives, within the error of those."""
    table = tables[number]
    rows = printed(simulation.as_markdown(table).splitlines()[0])
    assert list(rows) == [name for name, _ in table[2]]
    for name, values in table[2]:
        assert rows[name] == pytest.approx([100 * value for value in values], abs=4)


def test_the_gate_keeps_its_word_where_it_decides(tables: list[simulation.Table]) -> None:
    """With the processes and tests that the gate uses, no shape of noise gives more than the nominal share of false alarms."""
    _, columns, rows = tables[0]
    used = [column for column, name in enumerate(columns) if name in ("6, Welch", "8, ranks", "12, ranks")]
    assert len(used) == 3
    assert all(values[column] <= 0.05 + 0.012 for _, values in rows for column in used)


def test_samples_of_one_process_cry_wolf() -> None:
    """The share that docs/method.md names for a test on samples within a process is the simulated one."""
    share = simulation.within_one_process(rounds=1000)
    assert f"{100 * share:.0f}" in ("80", "81", "82", "83", "84")
    assert "a change in 82 % of" in " ".join(METHOD.read_text(encoding="utf-8").split())


def test_a_run_may_lie_above_the_rate_by_luck() -> None:
    """Of A/A runs in normal noise about 8 % lie above the nominal rate, as docs/method.md says; with two modes hardly any."""
    normal, modes = simulation.NOISE["normal, 1 %"], simulation.NOISE["half of the processes slower by 4 %, noise 0.1 %"]
    assert simulation.runs_above(normal, runs=200) == pytest.approx(0.08, abs=0.04)
    assert simulation.runs_above(modes, runs=100) <= 0.01
    assert "in normal noise 8 % lie above it by luck" in " ".join(METHOD.read_text(encoding="utf-8").split())
