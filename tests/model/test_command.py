"""`python -m replaydrift.model`: a script runs as it would by itself, and the exit code says how it went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FINDS_ONE = (Path(__file__).parent / "scripts" / "freed_unlikely_bug.py").read_text()
HERE = Path(__file__).parent


@pytest.fixture
def command(tmp_path):
    """Runs the command with a script of this text: what came of the process."""

    def run(text, *arguments, options=(), script="script.py", stdin="", python=()):
        if text is not None:
            (tmp_path / "script.py").write_text(text)
        return subprocess.run(
            [sys.executable, *python, "-m", "replaydrift.model", *options, script, *arguments],
            check=False, input=stdin, capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src"), "PYTHONWARNINGS": "error"},
        )  # fmt: skip

    return run


def test_a_script_finds_what_it_would_find_by_itself(command, tmp_path):
    """Its arguments, even ones that look like ours, its name, its folder, its module, what comes on standard input."""
    (tmp_path / "beside.py").write_text("NUMBER = 7\n")
    done = command(
        "import sys, os, pickle, beside\n"
        "class Thing: pass\n"
        "print(sys.argv, __name__, os.path.basename(__file__), beside.NUMBER, input(), sys.stdin.read().split())\n"
        "print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, sys.modules['__main__'].Thing is Thing)\n"
        "import torch; print(torch.ones(2, device='cuda').sum().item(), torch.cuda.is_available())\n",
        "--strict", "a b", "--json=x", stdin="first\nsecond third\n",
    )  # fmt: skip

    assert done.stdout.splitlines() == [
        "['script.py', '--strict', 'a b', '--json=x'] __main__ script.py 7 first ['second', 'third']", "True True", "2.0 True",
    ]  # fmt: skip
    assert "replaydrift.model: found nothing" in done.stderr
    assert done.returncode == 0


def test_a_finding_fails_only_where_that_was_asked_for(command, tmp_path):
    """Exit code 0 with findings, 3 with --strict; the file has them either way."""
    plain = command(FINDS_ONE)
    strict = command(FINDS_ONE, options=("--strict", "--json", "found.json"))

    assert (plain.returncode, strict.returncode) == (0, 3)
    assert "script.py:5: freed-memory" in plain.stderr
    assert json.loads((tmp_path / "found.json").read_text())["findings"][0]["line"] == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.json", "script.py"]


def test_a_script_that_raises_ends_as_by_itself_and_is_reported_on(command):
    """Its traceback without our frames, exit code 1, then what was found until then; --strict changes nothing."""
    done = command(FINDS_ONE + "\n\ndef fail():\n    raise ValueError('mine')\n\n\nfail()\n", options=("--strict",))

    assert done.returncode == 1
    before, report = done.stderr.split("replaydrift.model: 1 finding")
    assert before.startswith("Traceback (most recent call last):\n")
    assert before.rstrip().endswith("ValueError: mine")
    assert "__main__.py" not in before
    assert before.count('File "') == 2
    assert "freed-memory" in report


@pytest.mark.parametrize(
    ("ending", "code", "says"),
    [
        ("sys.exit()", 0, ""), ("sys.exit(0)", 0, ""), ("sys.exit(5)", 5, ""), ("sys.exit('stopped: no data')", 1, "stopped: no data"),
        ("sys.exit(-1)", 255, ""), ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()", 0, ""),
        ("atexit.register(lambda: print('last'))", 0, ""),
    ],
)  # fmt: skip
def test_the_exit_code_is_the_scripts_own(command, ending, code, says):
    """However the script ends; threads that it started are waited for, and what it registered for the end runs."""
    done = command(f"import sys, threading, time, atexit\n{ending}\n")

    assert done.returncode == code
    assert says in done.stderr
    assert "replaydrift.model: found nothing" in done.stderr
    assert done.stdout == {"threading": "late\n", "atexit.re": "last\n"}.get(ending[:9], "")


def test_a_script_that_stopped_early_is_not_called_clean(command):
    """Where nothing was found before an error, the report says how far it looked."""
    done = command("raise ValueError('mine')\n")

    assert done.returncode == 1
    assert "found nothing up to where the script stopped" in done.stderr


def test_a_script_can_come_on_standard_input(command):
    """`-` reads it there, and its lines are named and shown."""
    done = command(None, "one", script="-", stdin=FINDS_ONE + "import sys; print(sys.argv, repr(sys.path[0]))\n")

    assert done.returncode == 0
    assert done.stdout == "['-', 'one'] ''\n"
    assert '<stdin>:5: freed-memory: a replay uses memory that was freed\n  > x = torch.ones(4, device="cuda")' in done.stderr


def test_a_syntax_error_is_shown_as_python_shows_it(command):
    """The script's line with the place in it, none of our frames, exit code 1, and no report: nothing ran."""
    done = command("x = 1\ny = = 2\n")

    assert done.returncode == 1
    assert "SyntaxError: invalid syntax" in done.stderr
    assert "y = = 2" in done.stderr
    assert "Traceback" not in done.stderr
    assert "replaydrift.model:" not in done.stderr


def test_what_cannot_be_read_or_written_is_refused_before_anything_runs(command, tmp_path):
    """A script that is not there, a folder in its place, a report's file in a folder that is not there: exit code 2 and what to do."""
    missing = command(None, script="nowhere.py")
    folder = command(None, script=str(tmp_path))
    unwritable = command("print('ran')", options=("--json", "no/such/folder.json"))

    assert missing.returncode == folder.returncode == unwritable.returncode == 2
    assert missing.stderr.startswith("replaydrift.model: cannot read 'nowhere.py': No such file or directory. Expected the path of a Python script")
    assert "Is a directory" in folder.stderr
    assert unwritable.stderr == (
        "replaydrift.model: cannot write 'no/such/folder.json': its folder does not exist. Expected a file in a folder that does\n"
    )
    assert unwritable.stdout == ""


def test_a_report_that_cannot_be_written_in_the_end_is_said(command, tmp_path):
    """The findings stand in the text; exit code 2."""
    (tmp_path / "taken").mkdir()
    done = command(FINDS_ONE, options=("--json", "taken"))

    assert done.returncode == 2
    assert "freed-memory" in done.stderr
    assert "cannot write 'taken': Is a directory. The findings stand above" in done.stderr


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "much"])
def test_a_scale_that_is_no_factor_is_refused(command, scale):
    """Exit code 2, with what was found and what was expected."""
    done = command("print('ran')", options=(f"--scale={scale}",))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"found '{scale}', expected a number above 0, such as 1000" in done.stderr


def test_a_scale_stretches_virtual_time(command):
    """What touches memory takes a million times as long; what the host does in between does not."""
    text = (
        "import torch\nx = torch.zeros(10**5, device='cuda')\na, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        "a.record(); y = x + 1; b.record(); torch.cuda.synchronize(); print(a.elapsed_time(b))\n"
    )
    once, often = (float(command(text, options=("--scale", scale)).stdout) for scale in ("1", "1e6"))

    assert often > 50 * once > 0


def test_an_interpreter_without_torch_is_told_so(command, tmp_path):
    """Exit code 2, and how to get torch."""
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')\n")
    done = command("print('ran')")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "replaydrift.model: cannot import torch (libcudart.so.13: cannot open shared object file). "
        "Expected 2.11 to 2.15: python -m pip install torch\n"
    )


def test_nothing_but_the_report_comes_after_the_script(command):
    """A process that used cuBLAS, threads and a graph ends without a word of its own."""
    done = command(
        "import torch\nx = torch.ones(2, 2, device='cuda')\nx @ x\ngraph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph):\n    y = x @ x\ngraph.replay()\nprint(y.sum().item())\n"
    )

    assert (done.returncode, done.stdout) == (0, "8.0\n")
    assert done.stderr == "\nreplaydrift.model: found nothing that the recording froze by mistake, as far as memory and order can tell.\n"


def test_what_the_model_lacks_ends_the_script_by_name(command):
    """An error that says what is lacking, at the script's own line."""
    done = command("import torch\ntorch.compile(lambda x: x)\n")

    assert done.returncode == 1
    assert "LackError: the CPU model of CUDA graphs lacks torch.compile: it makes kernels for a real GPU: run it on a GPU" in done.stderr


def test_the_options_are_explained(command):
    """--help names each, and no option without a script is refused."""
    helping = command(None, options=("--help",))
    nothing = subprocess.run(
        [sys.executable, "-m", "replaydrift.model"], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")},
    )  # fmt: skip

    assert helping.returncode == 0
    for option in ("--strict", "--json FILE", "--scale", "script", "sys.argv"):
        assert option in helping.stdout
    assert nothing.returncode == 2
    assert "the following arguments are required: script" in nothing.stderr
