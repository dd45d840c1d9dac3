"""Tests of `replaydrift doctor` on machines that are described, not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from replaydrift import host
from replaydrift.commands import doctor
from replaydrift.host import Host

PYTHONS = {(3, 11): "/usr/bin/python3.11"}


@pytest.fixture
def says(monkeypatch, tmp_path):
    """What `doctor` prints on a machine, run in an empty folder."""
    monkeypatch.setenv("COLUMNS", "140")

    def of(here, *words, smi=None):
        monkeypatch.setattr(host, "look", lambda root: here)
        monkeypatch.setattr(host, "ask_nvidia_smi", lambda query: (smi or {}).get(query.split("=")[0], []))
        answer = CliRunner().invoke(doctor.command, words, catch_exceptions=False)
        assert answer.exit_code == 0
        return answer.output

    return of


def test_a_machine_without_a_gpu_runs_the_model(says):
    """Without a driver it says that the cases run on the CPU model, and that releases would run."""
    text = says(Host(pythons=PYTHONS, own=(3, 11), free_mb=50_000))

    assert "no NVIDIA driver: cases run on the CPU model" in text
    assert "2.14.1 *  2026-09-30  13.0  yes, with Python 3.11; 3.0 GB to download, 5.8 GB to keep" in text


def test_gpu_memory_and_who_uses_it_are_said(says):
    """Free memory, load, and each process on the GPU are shown, whatever commas are in its name."""
    here = Host(gpus=("NVIDIA H200",), driver="580.65.06", pythons=PYTHONS, own=(3, 11), free_mb=50_000)
    rows = {
        "--query-gpu": [["0", "NVIDIA H200", "143771", "100000", "[N/A]"]],
        "--query-compute-apps": [["77", "43000", "python", " with a comma"]],
    }
    text = says(here, smi=rows)

    assert "NVIDIA H200: 100,000 MiB free of 143,771 MiB, load unknown" in text
    assert "python, with a comma (pid 77, 43,000 MiB)" in text


def test_the_reason_stands_beside_what_would_not_run(says):
    """An old driver and a missing Python are said for each release, in JSON too."""
    here = Host(gpus=("NVIDIA A100",), driver="535.10", pythons={(3, 10): "/usr/bin/python3.10"}, own=(3, 10), free_mb=50_000)
    facts = json.loads(says(here, "--json"))
    rows = {row["release"]: row for row in facts["releases"]}

    assert rows["2.9.1"]["runs"]
    assert "needs driver 580" in rows["2.14.1"]["why_not"]
    assert "wheels for Python 3.11" in rows["2.15.0"]["why_not"]


def test_environments_are_weighed(says, tmp_path, monkeypatch):
    """Each environment under .nox is listed with its torch, an unfinished one as such."""
    monkeypatch.chdir(tmp_path)
    for name, stamp in (("torch-2.14.1", '{"torch": "2.14.1+cu130"}'), ("torch-2.15.0", "")):
        folder = tmp_path / ".nox" / name
        folder.mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text("")
        if stamp:
            (folder / "replaydrift-environment.json").write_text(stamp)
        (folder / "weight").write_bytes(b"x" * 2_000_000)
    text = says(Host(pythons=PYTHONS, own=(3, 11), free_mb=50_000))
    facts = json.loads(says(Host(pythons=PYTHONS, own=(3, 11)), "--json"))

    assert "torch-2.14.1  2.14.1+cu130" in text
    assert "torch-2.15.0  not finished" in text
    assert [one["megabytes"] for one in facts["environments"]] == [2, 2]


def test_the_real_machine_is_examined():
    """On the machine of the tests every question has an answer."""
    facts = doctor.examine(Path.cwd(), doctor.read_table())

    assert facts["free_mb"] > 0
    assert len(facts["releases"]) == len(doctor.read_table().entries)
