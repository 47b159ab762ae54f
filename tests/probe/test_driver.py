"""The driver and its cards, asked through a libnvidia-ml that is not NVIDIA's: what the real probe makes of each answer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probe.bench import Environment
from tests.support import require

SOURCE = Path(__file__).with_name("fake_nvml.c")
L4 = {"gpu": {"type": "L4", "count": 1}, "tier": "inventory"}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the folder of a library that is compiled with these options."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")

    def made(*options: str) -> Path:
        folder = tmp_path_factory.mktemp("nvml")
        argv = [str(compiler), "-shared", "-fPIC", *options, "-Wl,-soname,libnvidia-ml.so.1", "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)]
        subprocess.run(argv, check=True, capture_output=True)
        return folder

    return made


@pytest.fixture(scope="session")
def newer(library: Callable[..., Path]) -> Path:
    return library()


def checks(environment: Environment, folder: Path, told: str = "", changes: dict[str, Any] | None = None, **variables: str) -> dict[str, dict[str, Any]]:
    environ = {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": told, **variables}
    _, report, said = environment.verify(environ=environ, **(changes or L4))
    assert report, said
    return {check["id"]: check for check in report["checks"]}


def test_a_card_as_it_should_be(environment: Environment, newer: Path) -> None:
    found = checks(environment, newer, changes={**L4, "requires__driver": ">=580"})

    assert {name: found[name]["status"] for name in ("D01", "D02", "D05", "D06", "D08", "D09")} == dict.fromkeys(
        ("D01", "D02", "D05", "D06", "D08", "D09"), "pass"
    )
    assert found["D01"]["message"] == "driver 580.82.07, for CUDA up to 13.0: NVIDIA L4"


@pytest.mark.parametrize(
    ("told", "check", "status", "says", "fix"),
    [
        ("init=9", "D01", "fail", "is not loaded", "choose a machine with a GPU"),
        ("init=18", "D01", "fail", "different versions", "restart the machine"),
        ("init=4", "D01", "fail", "may not be used", "/dev/nvidia"),
        ("init=999", "D01", "fail", "error 999", "restart"),
        ("handle=15", "D01", "fail", "a GPU is lost", "restart the machine"),
        ("count=0", "D01", "fail", "sees 0 GPUs, 1 x L4 declared", "machine type"),
        ("count=2", "D01", "fail", "sees 2 GPUs", "gpu.count"),
        ("uncorrected=3", "D05", "fail", "3 uncorrected errors", "another machine"),
        ("remap_failed=1", "D05", "fail", "could not be remapped", "another machine"),
        ("remap_pending=1", "D05", "fail", "waits to be replaced", "restart the machine"),
        ("ecc=-3;remap_pending=-3", "D05", "skip", "tell nothing", ""),
        ("ecc=0;uncorrected=3", "D05", "pass", "no uncorrected errors", ""),
        ("reasons=8", "D06", "fail", "hardware slowdown", "another machine"),
        ("reasons=76", "D06", "fail", "hardware slowdown, hardware thermal slowdown", "another machine"),
        ("reasons=7", "D06", "pass", "does not slow", ""),
        ("used_mib=4000", "D08", "warn", "3.906 GiB of 22.49 GiB", "nvidia-smi"),
        ("mig=1", "D09", "warn", "partitions", "another one"),
        ("compute_mode=3", "D09", "warn", "one program at a time", "another one"),
        ("compute_mode=2", "D09", "warn", "no program may compute", "another one"),
        ("power_limit_mw=40000", "D09", "warn", "40 W of 72 W", "another one"),
    ],
)
def test_what_is_wrong_is_said_with_its_cure(environment: Environment, newer: Path, told: str, check: str, status: str, says: str, fix: str) -> None:
    found = checks(environment, newer, told)[check]

    assert (found["status"], says in found["message"]) == (status, True), found
    assert fix in (found["fix"] or "")


def test_an_old_driver_is_found_without_torch(environment: Environment, newer: Path) -> None:
    found = checks(environment, newer, changes={**L4, "requires__driver": ">=580"}, FAKE_NVML_DRIVER="535.261.03")

    assert found["D02"]["status"] == "fail"
    assert "535.261.03 does not fit >=580" in found["D02"]["message"]


def test_the_older_name_of_the_reasons_is_asked_where_the_newer_is_not_there(environment: Environment, library: Callable[..., Path]) -> None:
    found = checks(environment, library("-DOLD_NAMES"), "reasons=64")

    assert "hardware thermal slowdown" in found["D06"]["message"]


def test_without_the_library_the_program_is_asked(environment: Environment, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 570.86.15\n")
    program.chmod(0o755)

    found = checks(environment, tmp_path, PATH=f"{tmp_path}:/usr/bin:/bin")

    assert found["D01"]["message"] == "driver 570.86.15, told by nvidia-smi"
    assert {found[name]["status"] for name in ("D05", "D06", "D08", "D09")} == {"skip"}


def test_without_library_and_program_there_is_no_driver(environment: Environment, tmp_path: Path) -> None:
    found = checks(environment, tmp_path, PATH="/usr/bin:/bin")

    assert found["D01"]["status"] == "fail"
    assert "there is no NVIDIA driver" in found["D01"]["message"]


def test_without_a_declared_card_nothing_is_asked(environment: Environment, newer: Path) -> None:
    found = checks(environment, newer, "init=9", changes={"tier": "inventory"})

    assert found["D01"]["status"] == "skip"
