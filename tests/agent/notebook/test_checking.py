"""What is said of a machine that is not the one that was asked for, and of what moved since the
catalogue was written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provision.agent.notebook.document import NotebookDocument, parse_document
from provision.agent.notebook.kernel import Host, detect_host
from provision.agent.notebook.machine_check import find_facts_drift, find_mismatches
from provision.agent.notebook.machine_info import GpuCard, NotebookMachine, inspect_machine
from tests.agent.notebook.bench import MINOR, Runtime

GIB = 2**30
T4 = GpuCard("Tesla T4", "580.82.07", 15360, 3)
HERE = NotebookMachine(f"{MINOR}.7", "Ubuntu 22.04", (T4,), "", (), 13 * GIB, 100 * GIB)
WANTS_T4 = {"gpu": {"type": "T4", "device": "Tesla T4", "count": 1}, "driver_min": "570.26"}


def document(runtime: Runtime, /, **changes: Any) -> NotebookDocument:
    return parse_document(runtime.document("alpha==1.0", **changes))


def test_the_machine_that_was_asked_for_has_no_differences(plain: Runtime) -> None:
    wanted = document(
        plain,
        **WANTS_T4,
        expectations__requires={
            "ram_bytes": 13 * GIB,
            "disk_bytes": 50 * GIB,
            "vram_bytes": 15 * GIB,
        },
    )
    assert find_mismatches(wanted, HERE) == []
    assert find_mismatches(document(plain), replace(HERE, cards=())) == []


@pytest.mark.parametrize(
    ("changes", "here", "what", "ends"),
    [
        (
            WANTS_T4,
            {"cards": (), "no_cards_reason": "No devices were found"},
            "there is no GPU, but the spec requires T4 (Tesla T4): No devices were found",
            True,
        ),
        (
            WANTS_T4,
            {"cards": (replace(T4, name="NVIDIA L4"),)},
            "the GPU is NVIDIA L4, but the spec requires T4 (Tesla T4)",
            True,
        ),
        (
            {"gpu": {"type": "L4", "device": None, "count": 1}},
            {},
            "the GPU is Tesla T4, but the spec requires L4",
            True,
        ),
        (
            {"gpu": {"type": "T4", "device": "Tesla T4", "count": 2}},
            {},
            "only 1 of 2 GPUs are of type T4",
            True,
        ),
        (
            WANTS_T4,
            {"cards": (replace(T4, driver="535.104.05"),)},
            "the NVIDIA driver is 535.104.05, but the locked packages need 570.26 or newer",
            True,
        ),
        (
            WANTS_T4,
            {
                "cards": (replace(T4, used_mib=9000),),
                "gpu_processes": ("process 7 (python3) uses 8990 MiB",),
            },
            "8.8 GiB of GPU memory is already in use: process 7",
            False,
        ),
        (
            {**WANTS_T4, "expectations__requires": {"vram_bytes": 40 * GIB}},
            {},
            "the GPU has 15.0 GiB of memory, but the spec requires 40.0 GiB",
            True,
        ),
        ({}, {}, "there is a GPU (Tesla T4) that the spec does not require", False),
        (
            {"expectations__requires": {"ram_bytes": 32 * GIB}},
            {"cards": ()},
            "the machine has 13.0 GiB of memory, but the spec requires 32.0 GiB",
            True,
        ),
        (
            {"expectations__requires": {"disk_bytes": 200 * GIB}},
            {"cards": ()},
            "100.0 GiB of disk is free, but the spec requires 200.0 GiB",
            True,
        ),
    ],
)
def test_each_difference_is_told_with_what_to_do(
    plain: Runtime, changes: dict[str, Any], here: dict[str, Any], what: str, ends: bool
) -> None:
    (found,) = find_mismatches(document(plain, **changes), replace(HERE, **here))
    assert found.what.startswith(what)
    assert found.hint
    assert (found.blocks, found.always_blocks) == (ends, False)


def test_another_python_is_final_and_comes_first(plain: Runtime) -> None:
    listed = {
        "version": "2025.07",
        "as_of": "2026-11-20",
        "python": None,
        "torch": None,
        "flavour": None,
        "os": None,
        "driver": None,
    }
    found = find_mismatches(
        document(plain, **WANTS_T4, runtime=listed), replace(HERE, python="3.99.1", cards=())
    )
    assert [one.always_blocks for one in found] == [True, False]
    assert found[0].what == f"this is Python 3.99.1, but the packages are locked for {MINOR}"
    assert "runtime version 2025.07" in found[0].hint
    assert "isolation: venv" in found[0].hint
    own = document(plain, isolation="venv")
    assert find_mismatches(own, replace(HERE, python="3.99.1", cards=())) == []


@pytest.mark.parametrize(
    ("type_", "name", "fits"),
    [
        ("L4", "NVIDIA L40S", False),
        ("L4", "NVIDIA L4", True),
        ("A100-40GB", "NVIDIA A100-SXM4-40GB", True),
        ("T4", "Tesla T4", True),
        ("H100-80GB", "NVIDIA A100-SXM4-80GB", False),
    ],
)
def test_a_card_of_unknown_name_is_known_by_its_type(
    plain: Runtime, type_: str, name: str, fits: bool
) -> None:
    wanted = document(plain, gpu={"type": type_, "device": None, "count": 1})
    assert (find_mismatches(wanted, replace(HERE, cards=(replace(T4, name=name),))) == []) is fits


LISTED = {
    "version": "2026.07",
    "as_of": "2026-11-20",
    "python": f"{MINOR}.7",
    "torch": "2.11.0",
    "flavour": "cu128",
    "os": "Ubuntu 22.04",
    "driver": "580.82.07",
}


@pytest.mark.parametrize(
    ("here", "torch", "told"),
    [
        ({}, "2.11.0+cu128", []),
        ({}, None, []),
        (
            {"python": f"{MINOR}.9"},
            "2.11.0+cu128",
            [f"Python is {MINOR}.9, expected {MINOR}.7"],
        ),
        ({}, "2.12.0+cu130", ["torch is 2.12.0+cu130, expected 2.11.0+cu128"]),
        ({}, "2.11.0", []),
        (
            {"cards": (replace(T4, driver="590.1"),)},
            None,
            ["the NVIDIA driver is 590.1, expected 580.82.07"],
        ),
        (
            {"os": "Ubuntu 24.04"},
            None,
            ["the system is Ubuntu 24.04, expected Ubuntu 22.04"],
        ),
    ],
)
def test_what_moved_is_told_one_by_one(
    plain: Runtime, here: dict[str, Any], torch: str | None, told: list[str]
) -> None:
    assert [
        one.summary
        for one in find_facts_drift(
            document(plain, **WANTS_T4, runtime=LISTED), replace(HERE, **here), torch
        )
    ] == told


def test_the_cpu_build_of_the_same_torch_has_not_moved_where_no_gpu_is_asked_for(
    plain: Runtime,
) -> None:
    wanted, here = document(plain, runtime={**LISTED, "driver": None}), replace(HERE, cards=())
    assert find_facts_drift(wanted, here, "2.11.0+cpu") == []
    assert [one.found for one in find_facts_drift(wanted, here, "2.10.0+cpu")] == ["2.10.0+cpu"]
    assert find_facts_drift(document(plain), here, "2.10.0+cpu") == []


@pytest.mark.parametrize(
    ("environ", "modules", "files", "kernel", "place"),
    [
        (
            {"VERTEX_PRODUCT": "COLAB_ENTERPRISE", "COLAB_RELEASE_TAG": "x"},
            ["google.colab"],
            [],
            True,
            Host.ENTERPRISE,
        ),
        ({"VERTEX_PRODUCT": "WORKBENCH_INSTANCE"}, [], [], True, Host.WORKBENCH),
        ({"COLAB_RELEASE_TAG": "release"}, [], [], True, Host.COLAB),
        ({}, ["google.colab"], [], True, Host.COLAB),
        ({}, [], ["/var/colab/hostname"], False, Host.COLAB),
        ({}, ["google"], [], True, Host.JUPYTER),
        ({}, [], [], False, Host.PYTHON),
    ],
)
def test_the_place_is_detected(
    environ: dict[str, str], modules: list[str], files: list[str], kernel: bool, place: Host
) -> None:
    assert detect_host(environ, modules, lambda path: path in files, kernel) is place


def test_the_machine_is_looked_at_through_nvidia_smi(runtime: Runtime) -> None:
    runtime.card(used=9000, count=2)
    found = inspect_machine(runtime.base, runtime.environ())
    assert [card.name for card in found.cards] == ["Tesla T4", "Tesla T4"]
    assert (found.driver, found.cards[0].memory_mib) == ("580.82.07", 15360)
    assert found.gpu_processes == ("process 4711 (python3) uses 9000 MiB",)
    assert (found.ram_bytes or 0) > GIB // 4
    assert (found.disk_bytes or 0) > 0
    assert found.os


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo 'No devices were found'", "No devices were found"),
        ("echo 'NVIDIA-SMI has failed' >&2; exit 9", "NVIDIA-SMI has failed"),
        ("exit 3", "nvidia-smi exited with code 3"),
    ],
)
def test_without_a_card_its_reason_is_kept(runtime: Runtime, text: str, why: str) -> None:
    runtime.program("nvidia-smi", text)
    found = inspect_machine(runtime.base, runtime.environ())
    assert (found.cards, found.no_cards_reason, found.driver) == ((), why, None)
