"""The simulated reports are what the real probe says today of those machines, and each says that it
is simulated and what is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision.verification import read_report
from tests.agent.probe.bench import Environment, checks
from tests.agent.probe.machines import (
    LIBRARY,
    MACHINES,
    PROGRAM,
    SIMULATED,
    compiler,
    make_library,
    make_program,
    report,
)
from tests.support import require

WRONG = {
    "l4-lost": ("D01", "fail", "a GPU is lost"),
    "l4-library-mismatch": ("D01", "fail", "have different versions"),
    "l4-ecc-errors": ("D05", "fail", "3 uncorrected errors"),
    "l4-remap-pending": ("D05", "fail", "will be replaced"),
    "l4-remap-failed": ("D05", "fail", "could not be remapped"),
    "l4-throttled": ("D06", "fail", "hardware slowdown, hardware thermal slowdown"),
    "l4-partitioned": ("D09", "warn", "partitions (MIG)"),
    "t4-retirement-pending": ("D05", "fail", "will be retired"),
    "l4-to-be-reset": ("D07", "fail", "a restart of the machine"),
    "l4-declared-t4-there": ("D03", "fail", "the GPU is Tesla T4, but L4 is declared"),
    "l4-one-of-two": ("D01", "fail", "sees 1 GPU, but the spec declares 2 x L4"),
    "l4-old-driver": ("D02", "fail", "535.261.03 does not satisfy >=580"),
}
ROOT = Path(__file__).parents[3]
_OF_CARDS = ("gpu.", "driver.", "nvml.")


def stored(name: str) -> dict[str, Any]:
    return dict(read_report((SIMULATED / f"{name}.json").read_bytes(), name).document)


def of_cards(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a report says of driver and cards: the readings, and status and message of each check.
    The rest is of the machine that ran it.
    """
    readings = {
        one["key"]: one["value"]
        for one in document["readings"]
        if one["key"].startswith(_OF_CARDS) and one["class"] != "noise"
    }
    # The log is the real machine's.
    readings.pop("nvml.xids", None)
    told = {
        id_: (one["status"], one["message"])
        for id_, one in checks(document).items()
        if id_[0] == "D" and id_ != "D11"
    }
    return readings, told


def test_every_machine_has_its_report() -> None:
    assert {path.stem for path in SIMULATED.glob("*.json")} == set(MACHINES)


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_a_report_says_what_is_not_real_and_what_is_wrong(name: str) -> None:
    document = stored(name)

    assert document["subject"]["simulated"] == [PROGRAM if MACHINES[name].program else LIBRARY]
    # Of a card that is split, the driver does not tell how much memory a program gets.
    assert document["verdict"]["result"] in ("simulated", "failed") or name == "l4-partitioned"
    if name in WRONG:
        check, status, says = WRONG[name]
        found = checks(document)[check]
        assert (found["status"], says in found["message"]) == (status, True), found
    else:
        assert {one["status"] for id_, one in checks(document).items() if id_[0] == "D"} <= {
            "pass",
            "skip",
            "unknown",
        }


@pytest.mark.parametrize("name", ["l4-throttled", "l4-by-nvidia-smi", "l4-declared-t4-there"])
def test_a_report_that_is_remade_says_the_same(
    environment: Environment, tmp_path: Path, name: str
) -> None:
    require("cc", compiler() is not None, "there is no C compiler here to make a libnvidia-ml with")
    (tmp_path / "library").mkdir()
    (tmp_path / "program").mkdir()

    made = report(
        MACHINES[name],
        environment,
        make_library(tmp_path / "library"),
        make_program(tmp_path / "program"),
    )

    assert of_cards(made) == of_cards(stored(name)), (
        "python -m tests.agent.probe.machines remakes them"
    )


def test_without_a_card_the_device_tests_say_so_and_fail() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "device",
        "tests/agent/probe/test_device.py",
    ]
    # The suite's own interpreter has no torch, on any machine.
    environ = {
        **os.environ,
        "REQUIRE": "device",
        "PROVISION_TEST_DEVICE_PYTHON": sys.executable,
        "PYTEST_ADDOPTS": "",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=600
    )

    assert done.returncode == 1
    assert (
        "has no torch that sees an NVIDIA card (ModuleNotFoundError: No module named 'torch')"
        in done.stdout
    )
