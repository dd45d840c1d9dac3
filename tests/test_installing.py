"""Tests of planning: what would be installed on machines that are described, not there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from replaydrift import drivers, installing
from replaydrift.errors import ReleaseError
from replaydrift.host import Host
from replaydrift.installing import plan, with_wheel
from replaydrift.releases import Release, read_table

TABLE = read_table(Path(__file__).resolve().parents[1] / "torch-releases.toml")
PYTHONS = {(3, minor): f"/usr/bin/python3.{minor}" for minor in (10, 11, 12, 13)}
LAPTOP = Host(pythons=PYTHONS, own=(3, 11), free_mb=100_000)
SERVER = dataclasses.replace(LAPTOP, gpus=("NVIDIA H200",), driver="580.65.06")
OLD_SERVER = dataclasses.replace(SERVER, driver="550.54.15")


def planned(text, host=LAPTOP, **options):
    """The plan for a release by name."""
    return plan(Release.parse(text), host, TABLE, **options)


def test_a_gpu_takes_the_default_wheel_from_the_usual_index():
    """With a GPU the default wheel is what `pip install torch==2.14.1` gives, with its measured sizes."""
    made = planned("2.14.1", SERVER, pytorch_answers=True)

    assert made.requirements == ("torch==2.14.1", "numpy", "asv_runner")
    assert made.options == ()
    assert (made.download_mb, made.kept_mb, made.for_gpu) == (3016, 5800, True)
    assert made.lines()[0] == "torch 2.14.1: default wheel, CUDA 13.0, 3.0 GB to download, 5.8 GB to keep"
    assert "GPU NVIDIA H200, driver 580.65.06: new enough" in made.lines()[-1]


def test_no_gpu_takes_the_cpu_wheel_where_pytorch_answers():
    """Without a GPU the CPU wheel is preferred, and its size is said to be about."""
    made = planned("2.14.1", pytorch_answers=True)

    assert made.requirements[0] == "torch==2.14.1"
    assert made.options == ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
    assert made.wheel == "CPU wheel from PyTorch's index"
    assert made.size == "about 0.2 GB to download, about 1.0 GB to keep"


def test_no_gpu_takes_the_default_wheel_where_pytorch_does_not_answer():
    """Without a GPU and without PyTorch's index the default wheel runs too, only larger."""
    made = planned("2.14.1")

    assert made.options == ()
    assert "no NVIDIA GPU: the cases run on the CPU model" in made.lines()[-1]


def test_a_gpu_that_is_not_needed_changes_nothing():
    """For the CPU model a CPU wheel is taken even where there is a GPU, whatever its driver."""
    made = planned("2.14.1", OLD_SERVER, needs_gpu=False, pytorch_answers=True)

    assert made.wheel.startswith("CPU wheel")


@pytest.mark.parametrize(
    ("index", "options"),
    [
        ("https://wheels.example/simple", ("--extra-index-url", "https://wheels.example/simple")),
        ("/mnt/wheels", ("--find-links", "/mnt/wheels")),
    ],
)
def test_an_index_of_ones_own_comes_first(index, options):
    """--torch-index names an index or a folder of wheels, and then PyTorch's is not used."""
    made = planned("2.14.1", torch_index=index, pytorch_answers=True)

    assert made.options == options
    assert index in made.wheel
    assert made.size == "up to 3.0 GB to download, up to 5.8 GB to keep"


def test_another_build_comes_from_pytorchs_index():
    """2.14.1+cu126 is asked for by its full name, from the folder of its build."""
    made = planned("2.14.1+cu126", SERVER)

    assert made.requirements[0] == "torch==2.14.1+cu126"
    assert made.options == ("--extra-index-url", "https://download.pytorch.org/whl/cu126")
    assert made.size.startswith("about ")


def test_the_default_build_by_name_is_the_default_wheel():
    """The package index names default wheels without their build, so 2.14.1+cu130 is installed as 2.14.1."""
    made = planned("2.14.1+cu130", SERVER)

    assert made.requirements[0] == "torch==2.14.1"
    assert made.options == ()


def test_a_build_that_the_table_does_not_list_is_tried_with_a_remark():
    """The table may not know every build, so an unlisted one is tried and said to be unlisted."""
    assert any("no cu117 build of 2.14.1" in line for line in planned("2.14.1+cu117").lines())


def test_a_nightly_comes_from_the_nightly_index():
    """A nightly is a pre-release on an index of its own, and its size is unknown."""
    made = planned("2.16.0.dev20261101", pytorch_answers=True)

    assert made.options == ("--pre", "--extra-index-url", "https://download.pytorch.org/whl/nightly/cpu")
    assert planned("2.16.0.dev20261101", SERVER).options[-1].endswith("/nightly/cu132")
    assert "size unknown" in planned("2.16.0.dev20261101", SERVER).size


def test_an_old_driver_is_refused_with_the_builds_it_would_run():
    """A driver older than the lowest for the wheel's CUDA is refused, and the way out is named."""
    with pytest.raises(ReleaseError, match=r"needs driver 580 or newer, this machine has 550\.54\.15; take another build: 2\.14\.1\+cu126"):
        planned("2.14.1", OLD_SERVER)

    assert planned("2.14.1+cu126", OLD_SERVER).requirements[0] == "torch==2.14.1+cu126"


def test_the_interpreter_is_nox_s_own_or_the_newest_with_wheels():
    """2.15.0 has no wheels for Python 3.10, so another interpreter is taken; nox's own where it will do."""
    host = dataclasses.replace(LAPTOP, own=(3, 10))

    assert planned("2.14.1", host).python == "/usr/bin/python3.10"
    assert planned("2.15.0", host).python == "/usr/bin/python3.13"
    assert planned("2.1.0", dataclasses.replace(SERVER, own=(3, 12))).python_version == (3, 11)


def test_a_release_that_the_model_does_not_know_needs_a_gpu():
    """With no GPU, a release older than those that the CPU model was held against is refused before anything is downloaded."""
    with pytest.raises(ReleaseError, match=r"2\.8\.0 cannot run here: it needs an NVIDIA GPU, since the CPU model knows torch 2\.11"):
        planned("2.8.0", LAPTOP)

    assert planned("2.8.0", SERVER).for_gpu
    assert not planned("2.11.0", LAPTOP).for_gpu


def test_no_interpreter_is_refused_with_those_needed_and_those_there():
    """Where no interpreter has wheels, both lists are in the message."""
    host = dataclasses.replace(LAPTOP, own=(3, 10), pythons={(3, 10): "/usr/bin/python3.10"})

    with pytest.raises(ReleaseError, match=r"wheels for Python 3\.11, 3\.12, 3\.13, this machine has 3\.10"):
        planned("2.15.0", host)


def test_a_full_disk_is_refused_before_the_download():
    """Where not even one wheel fits beside what is unpacked, nothing is begun."""
    with pytest.raises(ReleaseError, match=r"it takes 6\.7 GB of disk while it is installed, 6\.0 GB are free"):
        planned("2.14.1", dataclasses.replace(LAPTOP, free_mb=6_000))


def test_a_release_whose_requirements_require_it_comes_at_once():
    """What torch 2.0.1 requires requires torch: where the whole does not fit, nothing is begun."""
    whole = planned("2.0.1", SERVER)
    with pytest.raises(ReleaseError, match="cannot be installed"):
        planned("2.0.1", dataclasses.replace(SERVER, free_mb=whole.download_mb + whole.kept_mb - 1))


@pytest.mark.parametrize(("free_mb", "short"), [(6_710, True), (8_800, True), (8_820, False)])
def test_where_disk_is_short_one_package_comes_after_another(free_mb, short):
    """Where the wheels do not fit beside what is unpacked from them they come one by one, and the plan says so."""
    made = planned("2.14.1", dataclasses.replace(LAPTOP, free_mb=free_mb))

    assert made.one_by_one == short
    assert any("disk is short" in line for line in made.lines()) == short


def test_an_unmeasured_size_is_an_estimate_and_said_to_be():
    """Where nobody measured an environment its weight is estimated from the download."""
    made = planned("2.9.1", SERVER)

    assert made.kept_mb == round(4067 * installing.KEPT_PER_DOWNLOAD)
    assert made.size == "about 4.1 GB to download, about 7.7 GB to keep"
    assert planned("2.0.0", SERVER).size == "size unknown"


def test_old_releases_get_the_numpy_they_were_built_with():
    """A torch before 2.3 was built against NumPy 1."""
    assert "numpy<2" in planned("2.2.2", SERVER).requirements
    assert "numpy" in planned("2.3.0", SERVER).requirements


def test_the_wheel_that_pip_takes_corrects_the_plan():
    """A CPU wheel in a folder that pip knows is found out before installing, and the sizes said are those of it."""
    made = with_wheel(planned("2.13.0"), "file:///wheels/torch-2.13.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl", 191_794_682, TABLE)

    assert made.lines()[0] == (
        "torch 2.13.0: CPU wheel, its file (192 MB) is on this machine, up to 29 MB to download, up to 1.0 GB to keep"
    )
    assert made.lines()[-1].strip() == "wheel torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def test_a_cpu_wheel_is_passed_over_where_there_is_a_gpu():
    """A CPU wheel in a folder that pip knows outranks the default wheel; a GPU needs that one, so it is asked for exactly."""
    made = with_wheel(planned("2.13.0", SERVER), "file:///wheels/torch-2.13.0%2Bcpu-cp311.whl", 191_794_682, TABLE)

    assert made.requirements[0] == "torch===2.13.0"
    assert made.lines()[-1].strip() == "passes over torch-2.13.0+cpu-cp311.whl: it has no CUDA"


def test_the_default_wheel_leaves_the_plan_as_it_is():
    """Where pip takes the default wheel, its sizes stay."""
    made = with_wheel(planned("2.14.1", SERVER), "https://files.example/torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl", None, TABLE)

    assert (made.download_mb, made.wheel) == (3016, "default wheel, CUDA 13.0")


@pytest.mark.parametrize(
    ("version", "lowest", "enough"),
    [
        ("580.65.06", "580", True),
        ("580", "580", True),
        ("579.99", "580", False),
        ("1000.1", "580", True),
        ("525.60.13", "525.60.13", True),
        ("525.60.11", "525.60.13", False),
    ],
)
def test_drivers_are_compared_by_number(version, lowest, enough):
    """Drivers are compared number by number, not as text."""
    assert enough == drivers.newer_or_same(version, lowest)
