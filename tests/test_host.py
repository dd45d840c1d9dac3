"""Tests of what is found out about this computer, with a stand-in for nvidia-smi."""

from __future__ import annotations

import http.server
import sys
import threading
import time

import pytest

from replaydrift import host


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A folder that is all of the search path; a call puts an executable script into it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))

    def put(name, text):
        (tmp_path / name).write_text(f"#!{sys.executable}\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return put


def test_gpus_and_driver_are_what_nvidia_smi_says(on_path):
    """Each line of nvidia-smi is a GPU; the driver is one for all."""
    on_path("nvidia-smi", "print('NVIDIA H200, 580.65.06\\nNVIDIA H200, 580.65.06')")

    assert host.find_gpus() == (("NVIDIA H200", "NVIDIA H200"), "580.65.06")


@pytest.mark.parametrize("text", ["raise SystemExit(9)", "print()"])
def test_an_nvidia_smi_that_fails_or_is_silent_is_none(on_path, text):
    """Where nvidia-smi finds no driver it prints nothing useful, and neither rows nor an error come of it."""
    on_path("nvidia-smi", text)

    assert host.ask_nvidia_smi("--query-gpu=name") == []


def test_a_missing_nvidia_smi_is_none(on_path):
    """A machine without the NVIDIA driver has no nvidia-smi, and that is no error."""
    assert host.ask_nvidia_smi("--query-gpu=name") == []


def test_pythons_are_those_that_answer(on_path):
    """An interpreter counts when it starts and says its version; a shim with nothing behind it does not."""
    on_path("python3.12", "print('cpython 3 12')")
    on_path("python3.13", "raise SystemExit('not installed')")
    on_path("python3.10", "print('pypy 3 10')")

    found = host.find_pythons()

    assert found.pop(sys.version_info[:2]) == sys.executable
    assert {version for version in found if version != sys.version_info[:2]} <= {(3, 12)}


def test_an_index_answers_or_does_not(tmp_path):
    """A server that answers is there; a port that nobody listens on is not, and no time is lost on it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            """Nothing: a test does not talk."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = host.answers(address)
        server.shutdown()
    start = time.monotonic()

    assert there
    assert not host.answers(address, seconds=1)
    assert time.monotonic() - start < 3


def test_disk_and_interpreter_are_read_off_this_machine(tmp_path):
    """The real facts hold at least the interpreter that asks, and some free disk."""
    here = host.look(tmp_path)

    assert here.pythons[here.own] == sys.executable
    assert here.free_mb > 0
