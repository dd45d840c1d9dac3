"""`replaydrift doctor`: what this machine has, and which releases would run on it. No torch is needed for the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table as Grid

from replaydrift import environments, host, installing
from replaydrift.commands import options
from replaydrift.errors import ReleaseError
from replaydrift.releases import Release, Table, read_table


@click.command()
@options.as_json
def command(as_json: bool) -> None:
    """Say what this machine has: GPUs and who else uses them, disk, Pythons, environments, and releases that would run."""
    facts = examine(Path.cwd(), read_table())
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    console = Console(width=None if Console().is_terminal else 140)
    console.print(_host(facts), "")
    console.print(_releases(facts["releases"]))
    console.print("* run by `nox -s matrix`. Sizes are those of the default wheel; a CPU wheel is far smaller.", "", style="dim")
    console.print(_environments(facts["environments"]))


def examine(root: Path, table: Table) -> dict[str, Any]:
    """A JSON tree of all that is shown: driver, GPUs, processes on them, Pythons, disk, releases, environments."""
    here = host.look(root)
    made = environments.existing(root / environments.FOLDER)
    return {
        "driver": here.driver,
        "gpus": gpus(),
        "processes": processes(),
        "pythons": {f"{major}.{minor}": path for (major, minor), path in here.pythons.items()},
        "free_mb": here.free_mb,
        "architecture": here.architecture,
        "releases": [_verdict(entry.version, here, table) for entry in table.entries],
        "environments": [
            {"name": one.name, "finished": one.recipe is not None, "torch": one.torch, "megabytes": one.weigh() // 1_000_000}
            for one in made
        ],
    }


def gpus() -> list[dict[str, Any]]:
    """Index, name, memory in MiB and load in percent of each NVIDIA GPU; None where nvidia-smi knows no number."""
    fields = ("index", "name", "memory_total_mib", "memory_free_mib", "load_percent")
    rows = host.ask_nvidia_smi("--query-gpu=index,name,memory.total,memory.free,utilization.gpu")
    return [{key: text if key == "name" else _number(text) for key, text in zip(fields, row, strict=False)} for row in rows]


def processes() -> list[dict[str, Any]]:
    """Who computes on the GPUs now: process id, name, memory in MiB. In a container others may be invisible."""
    # The name comes last, since it may hold commas.
    rows = host.ask_nvidia_smi("--query-compute-apps=pid,used_memory,process_name")
    return [{"pid": _number(row[0]), "memory_mib": _number(row[1]), "name": ",".join(row[2:])} for row in rows if len(row) > 2]


def _verdict(version: str, here: host.Host, table: Table) -> dict[str, Any]:
    entry = table.find(version)
    assert entry is not None
    facts: dict[str, Any] = {"release": version, "date": entry.date.isoformat(), "cuda": entry.cuda, "default": entry.default}
    try:
        planned = installing.plan(Release(version), here, table)
    except ReleaseError as error:
        return facts | {"runs": False, "why_not": str(error)}
    python = ".".join(map(str, planned.python_version))
    return facts | {"runs": True, "python": python, "download_mb": planned.download_mb, "kept_mb": planned.kept_mb}


def _host(facts: dict[str, Any]) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    for gpu in facts["gpus"]:
        memory = f"{_words(gpu['memory_free_mib'], 'MiB')} free of {_words(gpu['memory_total_mib'], 'MiB')}"
        grid.add_row(f"GPU {gpu['index']}", f"{gpu['name']}: {memory}, load {_words(gpu['load_percent'], '%')}")
    if facts["driver"] is None:
        grid.add_row("GPU", "no NVIDIA driver: cases run on the CPU model (--engine model)")
    else:
        grid.add_row("driver", facts["driver"])
        for one in facts["processes"]:
            grid.add_row("in use by", f"{one['name']} (pid {one['pid']}, {_words(one['memory_mib'], 'MiB')})")
        if not facts["processes"]:
            grid.add_row("in use by", "nobody that can be seen from here")
    grid.add_row("Python", ", ".join(facts["pythons"]))
    grid.add_row("disk", f"{facts['free_mb'] / 1000:.1f} GB free here")
    return grid


def _releases(rows: list[dict[str, Any]]) -> Grid:
    grid = Grid("release", "date", "CUDA", "would run here", box=None, pad_edge=False, header_style="bold")
    for row in reversed(rows):
        words = f"yes, with Python {row['python']}; {_size(row)}" if row["runs"] else f"no: {row['why_not']}"
        grid.add_row(row["release"] + (" *" if row["default"] else ""), row["date"], row["cuda"], words)
    return grid


def _environments(rows: list[dict[str, Any]]) -> Grid | str:
    if not rows:
        return "no environments yet: `nox -s matrix` makes them"
    grid = Grid("environment", "torch", "weight", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        state = row["torch"] or ("" if row["finished"] else "not finished")
        grid.add_row(row["name"], state, f"{row['megabytes'] / 1000:.2f} GB")
    grid.add_row("in all", "", f"{sum(row['megabytes'] for row in rows) / 1000:.2f} GB; `nox -s clean` frees them")
    return grid


def _size(row: dict[str, Any]) -> str:
    if row["download_mb"] is None:
        return "size unknown"
    return f"{row['download_mb'] / 1000:.1f} GB to download, {row['kept_mb'] / 1000:.1f} GB to keep"


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _words(number: int | None, unit: str) -> str:
    return "unknown" if number is None else f"{number:,} {unit}"
