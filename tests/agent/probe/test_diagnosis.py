"""What DCGM's diagnosis and the kernel's log say of the cards: answers in both layouts of dcgmi,
and a log that may not be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.observing.kernel_log import read_xids
from tests.agent.probe.bench import Environment

L4 = {"gpu": {"type": "L4", "count": 1}}


def three(*results: dict[str, Any]) -> dict[str, Any]:
    tests = [
        {"name": "Inforom", "results": list(results)},
        {"name": "Denylist", "results": [{"status": "Pass"}]},
    ]
    return {
        "DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]}
    }


def four(*results: dict[str, Any]) -> dict[str, Any]:
    tests = [
        {
            "name": "software",
            "results": list(results),
            "test_summary": {"status": "Fail" if results else "Pass"},
        }
    ]
    return {
        "DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]},
        "entity_groups": [],
    }


CASES = [
    (three({"gpu_id": "0", "status": "Pass"}), "pass", "dcgmi diag -r 1: 2 tests pass"),
    (
        three({"gpu_id": "0", "status": "Fail", "warnings": "the InfoROM is corrupt"}),
        "warn",
        "Inforom: Fail (the InfoROM is corrupt)",
    ),
    (three({"gpu_id": "0", "status": "Warn"}), "warn", "Inforom: Warn"),
    (
        four(
            {
                "entity_id": 0,
                "status": "Fail",
                "warnings": [{"warning": "row remap pending", "error_id": 8}],
            }
        ),
        "warn",
        "software: Fail (row remap pending)",
    ),
    (four({"entity_id": 0, "status": "Pass"}), "pass", "1 tests pass"),
    (three({"status": "Skip"}), "pass", "1 tests pass"),
    ({}, "unknown", "no test results in its output"),
]


def dcgmi(folder: Path, answer: str, code: int = 0) -> str:
    (folder / "answer.json").write_text(answer, encoding="utf-8")
    (folder / "dcgmi").write_text(
        f'#!/bin/sh\necho "$@" > {folder}/asked\ncat {folder}/answer.json\nexit {code}\n',
        encoding="utf-8",
    )
    (folder / "dcgmi").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def found(environment: Environment, path: str, **changes: Any) -> dict[str, Any]:
    _, report, said = environment.verify(
        "--only", "D10", environ={"PATH": path}, **{**L4, **changes}
    )
    assert report, said
    return next(check for check in report["checks"] if check["id"] == "D10")


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("answer", "status", "says"), CASES)
def test_the_diagnosis_is_read_in_both_layouts(
    environment: Environment, tmp_path: Path, answer: dict[str, Any], status: str, says: str
) -> None:
    check = found(
        environment, dcgmi(tmp_path, json.dumps(answer), code=1 if status == "warn" else 0)
    )

    assert (check["status"], says in check["message"]) == (status, True), check
    assert (tmp_path / "asked").read_text().split() == ["diag", "-r", "1", "-j"]


def test_the_deep_tier_asks_for_the_second_level(environment: Environment, tmp_path: Path) -> None:
    found(environment, dcgmi(tmp_path, json.dumps(four())), tier="deep")

    assert (tmp_path / "asked").read_text().split() == ["diag", "-r", "2", "-j"]


def test_an_answer_that_is_no_json_is_unknown_and_a_missing_program_is_skipped(
    environment: Environment, tmp_path: Path
) -> None:
    garbled = found(environment, dcgmi(tmp_path, "Error: unable to connect to host engine", code=1))
    missing = found(environment, "/usr/bin:/bin")

    assert (garbled["status"], "unable to connect" in garbled["message"]) == ("unknown", True)
    assert (missing["status"], missing["message"]) == ("skip", "dcgmi is not installed")


LOG = (
    "6,100,1000,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07\n"
    "4,101,2000,-;NVRM: Xid (PCI:0000:00:04): 31, pid=1, name=python, MMU Fault\n"
    "4,102,3000,-;NVRM: Xid (PCI:0000:00:04): 79, GPU has fallen off the bus.\n"
    "4,103,3000,-;NVRM: Xid (PCI:0000:00:04): 79, GPU has fallen off the bus.\n"
    "6,104,4000,-;usb 1-1: Xid (no driver of ours): 48\n"
)


def test_errors_in_the_kernels_log_are_found(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text(LOG, encoding="utf-8")

    assert read_xids(tmp_path) == [31, 79]


def test_a_log_that_is_not_there_or_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    assert read_xids(tmp_path) is None
    (tmp_path / "dev/kmsg").mkdir(parents=True)
    assert read_xids(tmp_path) is None
