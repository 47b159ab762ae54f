"""Which cards CUDA shows: of those that the driver's library and nvidia-smi tell, by what
CUDA_VISIBLE_DEVICES says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.observing.visible_devices import VisibleDevices, find_visible_devices
from tests.agent.probe.bench import Environment
from tests.agent.probe.machines import SMI, make_program, told
from tests.agent.probe.test_driver import checks, library, newer  # noqa: F401

RTX = {
    "gpu": {"type": "RTX-4090", "count": 1},
    "tier": "inventory",
    "card": {"memory_bytes": 24 * 2**30, "tflops": {}, "source": "data sheet"},
}
NAMES = "NVIDIA T400 4GB|NVIDIA GeForce RTX 4090"
SAYS = (
    "count=2;total_mib@0=4096;total_mib@1=24564;capability@0=75;pci@0=531763422;pci@1=645140702;"
    "ecc=-3;reasons@0=64"
)
"""A small card that is too hot stands in the first slot, as the driver counts them. 645140702 is
0x267410de.
"""


def card(place: int, kind: str = "one", **changes: Any) -> dict[str, Any]:
    told = {
        "name": kind,
        "uuid": f"GPU-{place}ab{place}-4711",
        "address": f"0000:0{place}:00.0",
        "total_bytes": 2**34,
        "mig": False,
    }
    return {**told, **changes}


ALIKE = [card(0), card(1), card(2)]
UNLIKE = [card(0, "small"), card(1, "large"), card(2, "large")]


@pytest.mark.parametrize(
    ("cards", "text", "order", "count", "places"),
    [
        (ALIKE, None, None, 3, (0, 1, 2)),
        (ALIKE, "", None, 0, ()),
        (ALIKE, "-1", None, 0, ()),
        (ALIKE, "NoDevFiles", None, 0, ()),
        (ALIKE, "2", None, 1, (2,)),
        (ALIKE, " 2, 0", None, 2, (0, 2)),
        (ALIKE, "0,3,1", None, 1, (0,)),
        (ALIKE, "0,2,-1,1", None, 2, (0, 2)),
        (ALIKE, "1,1", None, 0, ()),
        (ALIKE, "GPU-2ab", None, 1, (2,)),
        (ALIKE, "GPU-2ab2-4711,GPU-0", None, 2, (0, 2)),
        (ALIKE, "GPU-", None, 0, ()),
        (ALIKE, "GPU-9,0", None, 0, ()),
        (ALIKE, "MIG-GPU-2ab2-4711/1/0", None, 3, (0, 1, 2)),
        ([card(0, mig=True), card(1)], "0", None, 2, (0, 1)),
        (UNLIKE, "GPU-0", None, 1, (0,)),
        (UNLIKE, "0", "PCI_BUS_ID", 1, (0,)),
        (UNLIKE, "0", None, 1, None),
        (UNLIKE, "0", "FASTEST_FIRST", 1, None),
        (UNLIKE, "1,0", None, 2, None),
        (UNLIKE, "2,0,1", None, 3, (0, 1, 2)),
        (UNLIKE, "", None, 0, ()),
        ([card(0, address="0000:81:00.0"), card(1)], "0", "PCI_BUS_ID", 1, (1,)),
        ([card(0, uuid=None), card(1, uuid=None)], "GPU-1", None, 2, None),
        ([card(0, uuid=None)], "GPU-1", None, 1, (0,)),
        ([], "0", None, 0, ()),
    ],
)
def test_what_a_variable_shows(
    cards: list[dict[str, Any]],
    text: str | None,
    order: str | None,
    count: int,
    places: tuple[int, ...] | None,
) -> None:
    told = {"CUDA_VISIBLE_DEVICES": text, "CUDA_DEVICE_ORDER": order}
    assert find_visible_devices(
        cards, {key: value for key, value in told.items() if value is not None}
    ) == VisibleDevices(count, places)


@pytest.mark.parametrize(
    "variables",
    [
        {"CUDA_VISIBLE_DEVICES": "GPU-222"},
        {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    ],
)
def test_the_card_that_is_shown_is_the_machine(
    environment: Environment,
    newer: Path,  # noqa: F811
    variables: dict[str, str],
) -> None:
    found = checks(environment, newer, SAYS, RTX, FAKE_NVML_NAME=NAMES, **variables)

    assert {
        name: found[name]["status"] for name in ("D01", "D03", "D04", "D06", "D08")
    } == dict.fromkeys(("D01", "D03", "D04", "D06", "D08"), "pass")
    assert found["D01"]["message"] == (
        "driver 580.82.07, for CUDA up to 13.0: NVIDIA GeForce RTX 4090; "
        "CUDA_VISIBLE_DEVICES exposes 1 of 2 GPUs"
    )


def test_a_number_among_cards_of_two_kinds_tells_how_many_and_not_which(
    environment: Environment,
    newer: Path,  # noqa: F811
) -> None:
    found = checks(environment, newer, SAYS, RTX, FAKE_NVML_NAME=NAMES, CUDA_VISIBLE_DEVICES="0")

    assert {name: found[name]["status"] for name in ("D01", "D03", "D04")} == {
        "D01": "pass",
        "D03": "unknown",
        "D04": "unknown",
    }
    assert found["D03"]["fix"].startswith(
        "also set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPU by its UUID"
    )
    assert found["D04"]["fix"] == found["D03"]["fix"]


def test_a_variable_that_hides_too_many_is_named(environment: Environment, newer: Path) -> None:  # noqa: F811
    found = checks(environment, newer, SAYS, RTX, FAKE_NVML_NAME=NAMES, CUDA_VISIBLE_DEVICES="")

    assert found["D01"]["status"] == "fail"
    assert found["D01"]["message"] == (
        "CUDA_VISIBLE_DEVICES exposes 0 of the 2 GPUs that the driver sees, but the "
        "spec declares 1 x RTX-4090"
    )
    assert "unset it" in found["D01"]["fix"]


def test_how_many_cards_there_are_is_told_beside_how_many_are_shown(
    environment: Environment,
    newer: Path,  # noqa: F811
) -> None:
    environ = {
        "LD_LIBRARY_PATH": str(newer),
        "FAKE_NVML": SAYS,
        "FAKE_NVML_NAME": NAMES,
        "CUDA_VISIBLE_DEVICES": "GPU-111",
    }
    _, report, _ = environment.verify(environ=environ, **RTX)
    readings = {one["key"]: one["value"] for one in report["readings"]}

    assert (readings["nvml.count"], readings["nvml.count_all"], readings["gpu.name"]) == (
        1,
        2,
        "NVIDIA T400 4GB",
    )
    assert "GPU-111" not in str(
        [value for key, value in readings.items() if key.startswith("nvml.")]
    )


def test_what_nvidia_smi_tells_is_shown_alike(environment: Environment, tmp_path: Path) -> None:
    environ = {
        "PATH": f"{make_program(tmp_path)}:/usr/bin:/bin",
        "FAKE_SMI": told(SMI),
        "FAKE_SMI_COUNT": "2",
    }
    found = checks(environment, tmp_path, CUDA_VISIBLE_DEVICES="GPU-1110", **environ)["D01"]

    assert found["status"] == "pass"
    assert found["message"].endswith("NVIDIA L4; CUDA_VISIBLE_DEVICES exposes 1 of 2 GPUs")


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("variable", "during"), [("GPU-222", []), ("GPU-111", ["hardware thermal slowdown"])]
)
def test_a_card_that_is_not_shown_is_not_watched(
    environment: Environment,
    newer: Path,  # noqa: F811
    variable: str,
    during: list[str],
) -> None:
    environ = {
        "LD_LIBRARY_PATH": str(newer),
        "FAKE_NVML": SAYS,
        "FAKE_NVML_NAME": NAMES,
        "CUDA_VISIBLE_DEVICES": variable,
    }
    _, report, _ = environment.add("alpha", "import time\ntime.sleep(0.5)\n").verify(
        environ=environ, **{**RTX, "tier": "quick"}
    )

    assert {one["key"]: one["value"] for one in report["readings"]}[
        "nvml.slowed_during.imports"
    ] == during
