"""Tests of what is asked of pip and uv, with scripts in place of pip."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from test_installing import LAPTOP, TABLE, planned

from replaydrift import installers
from replaydrift.errors import ReleaseError
from replaydrift.installers import Wheel


def test_pip_and_uv_are_asked_in_their_own_words():
    """In uv pre-releases have another name and all indexes must be asked for; neither of the two keeps a cache."""
    made = planned("2.16.0.dev20261101", pytorch_answers=True)
    (pip,), (uv,) = installers.commands(made, "env/bin/python"), installers.commands(made, "env/bin/python", uv="/usr/bin/uv")

    assert pip[:4] == ["env/bin/python", "-m", "pip", "install"]
    assert "--no-cache-dir" in pip
    assert uv[:5] == ["/usr/bin/uv", "pip", "install", "--python", "env/bin/python"]
    assert {"--prerelease=allow", "--no-cache", "unsafe-best-match"} <= set(uv)
    assert "--pre" not in uv


def _pip(tmp_path, text):
    """An interpreter that answers every `-m pip` with this script."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return str(script)


def test_pip_is_asked_what_it_would_take(tmp_path):
    """The report of pip names the wheel; one on this machine comes with its size."""
    wheel = tmp_path / "torch-2.13.0+cpu-cp311.whl"
    wheel.write_bytes(b"x" * 1000)
    url = wheel.as_uri()
    python = _pip(tmp_path, f"""echo '{{"install": [{{"download_info": {{"url": "{url}"}}}}]}}'""")

    assert installers.taken_by_pip(planned("2.13.0"), python) == Wheel(url, 1000)


def test_one_package_after_another_ends_with_torch(tmp_path):
    """Where disk is short there is a command for each package that torch itself asks for, none for its extras, and torch is last."""
    report = {"install": [{
        "download_info": {"url": "https://files.example/torch-2.14.1-cp311.whl"},
        "metadata": {"requires_dist": ["filelock", 'triton~=3.8.0; platform_system == "Linux"', 'optree>=0.13.0; extra == "optree"']},
    }]}  # fmt: skip
    short = planned("2.14.1", dataclasses.replace(LAPTOP, free_mb=8_000))
    wheel = installers.taken_by_pip(short, _pip(tmp_path, f"cat <<'END'\n{json.dumps(report)}\nEND"))
    steps = installers.commands(short, "env/bin/python", wheel)

    assert [step[-1] for step in steps[:-1]] == ["filelock", 'triton~=3.8.0; platform_system == "Linux"']
    assert steps[-1][-3:] == ["torch==2.14.1", "numpy", "asv_runner"]
    assert all(step[:4] == ["env/bin/python", "-m", "pip", "install"] for step in steps)
    assert len(installers.commands(planned("2.14.1"), "env/bin/python", wheel)) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["ERROR: Could not find it", "ERROR: No matching distribution found for torch==2.13.0"], "'No matching distribution found"),
        (["    The user requested (constraint) torch<=2.12", "ERROR: ResolutionImpossible"], r"'The user requested \(constraint\)"),
        ([], "'nothing'"),
    ],
)
def test_pip_s_own_words_say_why_there_is_no_wheel(tmp_path, words, reason):
    """Where pip finds nothing, its last error or the constraint in the way is the reason given."""
    python = _pip(tmp_path, "\n".join([*(f"echo '{line}' >&2" for line in words), "exit 1"]))

    with pytest.raises(ReleaseError, match=rf"2\.13\.0 cannot be installed: pip says {reason}"):
        installers.taken_by_pip(planned("2.13.0"), python)


def test_a_pip_that_hangs_is_given_up(tmp_path):
    """A package index that never answers ends in an error, not in waiting."""
    with pytest.raises(ReleaseError, match="pip gave no answer within 0 s"):
        installers.taken_by_pip(planned("2.13.0"), _pip(tmp_path, "exec sleep 20"), seconds=0.2)


def test_what_is_fetched_lies_beside_the_environment_for_a_while(tmp_path):
    """Temporary files go to the environment's own disk, and are gone afterwards, also after a failure."""
    with pytest.raises(RuntimeError, match="pip failed"), installers.scratch(tmp_path / "env") as variables:
        inside = Path(variables["TMPDIR"])
        assert inside.parent == tmp_path / "env"
        (inside / "torch.whl").write_bytes(b"half")
        raise RuntimeError("pip failed")
    assert not inside.exists()
    assert (tmp_path / "env").is_dir()


def test_a_passed_over_wheel_lends_its_requirements_to_nobody(tmp_path):
    """On a GPU the CPU wheel that pip prefers is passed over, and what the next one requires counts."""
    wheels = {
        "torch==2.13.0": ("file:///wheels/torch-2.13.0%2Bcpu-cp311.whl", "filelock"),
        "torch===2.13.0": ("https://files.example/torch-2.13.0-cp311.whl", "nvidia-nccl-cu13"),
    }
    answers = "\n".join(
        f"{asked}) echo '" + json.dumps({"install": [{"download_info": {"url": url}, "metadata": {"requires_dist": [requires]}}]}) + "' ;;"
        for asked, (url, requires) in wheels.items()
    ).replace("file:///wheels", tmp_path.as_uri())
    (tmp_path / "torch-2.13.0+cpu-cp311.whl").write_bytes(b"x")
    python = _pip(tmp_path, f'for last; do :; done\ncase "$last" in\n{answers}\nesac')
    server = dataclasses.replace(LAPTOP, gpus=("NVIDIA H200",), driver="580.65.06")
    made, wheel = installers.settled(planned("2.13.0", server), python, TABLE)

    assert made.requirements[0] == "torch===2.13.0"
    assert wheel.requires == ("nvidia-nccl-cu13",)
