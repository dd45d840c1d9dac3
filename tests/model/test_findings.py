"""What `python -m replaydrift.model script.py` finds: the scripts beside this file say on which line, `# finds <kind>`.

Each script with a mistake has a twin without it. Values that a script asserts are those that come out here; where a mistake
is only possible, not likely, they are right, and it is found all the same.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("torch")

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
END_WITH_AN_ERROR = {"sync_item_bug", "pageable_bug"}


def marked(name):
    """The findings that a script's lines name: kind and line."""
    lines = (SCRIPTS / f"{name}.py").read_text().splitlines()
    return sorted((kind, number) for number, line in enumerate(lines, 1) for kind in re.findall(r"# finds (\S+)$", line))


def report_of(path, *options):
    """Run a script as the command does, in this process: its exit code, the findings as JSON, the report in words."""
    from replaydrift.model.__main__ import main

    words = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(words):
        file = Path(folder) / "findings.json"
        code = main([*options, "--json", str(file), str(path)])
        return code, json.loads(file.read_text()), words.getvalue()


@pytest.mark.modelled
@pytest.mark.parametrize("name", NAMES)
def test_a_script_gives_the_findings_that_its_lines_name(name):
    """Kind and line, nothing more; a script without a mistake gives none; and the script's own assertions hold."""
    path = SCRIPTS / f"{name}.py"
    code, report, words = report_of(path)

    assert sorted((found["kind"], found["line"]) for found in report["findings"]) == marked(name), words
    assert {found["file"] for found in report["findings"]} <= {str(path)}
    assert code == report["exit_code"] == (1 if name in END_WITH_AN_ERROR else 0), words


def test_every_kind_has_a_script_with_it_and_one_without():
    """The kinds of finding are those of the scripts, and each family of scripts has a clean one."""
    from replaydrift.model.findings import KINDS

    assert {kind for name in NAMES for kind, _ in marked(name)} == set(KINDS)
    for name in NAMES:
        assert name.endswith(("_bug", "_clean"))
        assert bool(marked(name)) == name.endswith("_bug")
        family = next(first for first in ("not_recorded", "read_early", "output", name.split("_")[0]) if name.startswith(first))
        if name not in ("threads_bug", "optimizer_bug", "double_buffer_bug"):
            assert any(other.startswith(family) and other.endswith("_clean") for other in NAMES), name


@pytest.mark.modelled
def test_a_finding_names_the_other_lines_and_what_to_do():
    """Of freed memory: where it was recorded, freed and replayed, who owns it now, why that is wrong, how to mend it."""
    path = SCRIPTS / "freed_input_bug.py"
    _, report, words = report_of(path)
    (found,) = report["findings"]
    lines = {place["role"]: place["line"] for place in found["places"]}

    assert lines == {"recorded": 10, "freed": 14, "replayed": 16, "now owned by the tensor allocated": 15}
    assert found["function"] == "capture"
    assert "its block has gone to another tensor, and each replay reads that one" in found["why"]
    assert found["fix"].startswith("Keep the tensor for as long as the graph is replayed")
    assert 'freed_input_bug.py:7: freed-memory: a replay uses memory that was freed\n  > x = torch.ones(4, device="cuda")' in words
    assert re.search(r"replayed: \S*freed_input_bug\.py:16  graph\.replay\(\)", words)
    assert "Seen on a CPU model of CUDA graphs, not on hardware." in words


@pytest.mark.modelled
def test_what_comes_again_on_one_line_is_one_finding():
    """Three replays of freed memory: one finding, seen three times."""
    _, report, words = report_of(SCRIPTS / "freed_by_rebinding_bug.py")

    assert [found["times"] for found in report["findings"]] == [3]
    assert "a replay uses memory that was freed (seen 3 times)" in words


@pytest.mark.modelled
def test_the_cast_that_autocast_keeps_has_a_fix_of_its_own():
    """The finding of a cached cast says how to capture under autocast."""
    _, report, _ = report_of(SCRIPTS / "freed_cast_bug.py")

    assert "capture under autocast(cache_enabled=False), or enter autocast inside" in report["findings"][0]["fix"]


@pytest.mark.modelled
def test_a_race_names_both_sides():
    """Two replays on two streams: where each was replayed and recorded, and on which stream."""
    _, report, _ = report_of(SCRIPTS / "device_race_replays_bug.py")
    (found,) = report["findings"]

    assert [place["line"] for place in found["places"]] == [19, 12, 17, 8]
    assert [place["role"] for place in found["places"]] == [
        "this side, replayed", "this side, recorded in graph 2", "other side, replayed", "other side, recorded in graph 1",
    ]  # fmt: skip
    assert "no event, wait or synchronize orders the two" in found["why"]


@pytest.mark.modelled
def test_assumed_durations_play_no_part():
    """A thousand times slower copies and kernels, the same findings: a schedule is judged by what orders it."""
    for name in ("host_write_unlikely_bug", "device_race_unlikely_bug", "host_write_clean", "prefetcher_clean"):
        _, report, words = report_of(SCRIPTS / f"{name}.py", "--scale", "100000")

        assert sorted((found["kind"], found["line"]) for found in report["findings"]) == marked(name), words


@pytest.mark.modelled
def test_a_helper_in_another_file_is_named_by_its_own_line():
    """The line at fault may lie in a module that the script imports."""
    with tempfile.TemporaryDirectory() as folder:
        helper, script = Path(folder) / "helper_of_a_script.py", Path(folder) / "script.py"
        helper.write_text("import torch\n\ndef make():\n    return torch.ones(4, device='cuda')\n")
        script.write_text(
            "import torch\nfrom helper_of_a_script import make\nx = make()\ngraph = torch.cuda.CUDAGraph()\n"
            "with torch.cuda.graph(graph):\n    y = x + 1\nx = None\ngraph.replay()\n"
        )
        code, report, _ = report_of(script)

    (found,) = report["findings"]
    assert (code, found["kind"], Path(found["file"]).name, found["line"]) == (0, "freed-memory", "helper_of_a_script.py", 4)


@pytest.mark.modelled
def test_the_report_says_which_model_and_torch_it_is_of():
    """The JSON has the release, the model's version with its assumed durations, and no finding for a clean script."""
    import torch

    from replaydrift import model

    _, report, words = report_of(SCRIPTS / "freed_input_clean.py")

    assert (report["schema"], report["engine"], report["findings"]) == (1, "model", [])
    assert report["torch"] == torch.__version__
    assert report["model"] == model.info()
    assert words.strip() == "replaydrift.model: found nothing that the recording froze by mistake, as far as memory and order can tell."
