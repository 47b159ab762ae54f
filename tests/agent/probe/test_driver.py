"""The driver and its cards, asked through a libnvidia-ml that is not NVIDIA's: what the real probe
makes of each answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.probe.bench import Environment
from tests.agent.probe.machines import SMI, compiler, make_library, make_program, told
from tests.support import require

L4 = {"gpu": {"type": "L4", "count": 1}, "tier": "inventory"}
CARD = {"memory_bytes": 24 * 2**30, "bandwidth_gb_s": 300, "tflops": {}, "source": "data sheet"}
ALL = ("D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08", "D09")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return the folder of a library that is compiled with these options."""
    require("cc", compiler() is not None, "there is no C compiler here to make a libnvidia-ml with")
    return lambda *options: make_library(tmp_path_factory.mktemp("nvml"), *options)


@pytest.fixture(scope="session")
def newer(library: Callable[..., Path]) -> Path:
    return library()


def checks(
    environment: Environment,
    folder: Path,
    says: str = "",
    changes: dict[str, Any] | None = None,
    **variables: str,
) -> dict[str, dict[str, Any]]:
    environ = {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": says, **variables}
    _, report, said = environment.verify(environ=environ, **(changes or L4))
    assert report, said
    return {check["id"]: check for check in report["checks"]}


def test_a_card_as_it_should_be(environment: Environment, newer: Path) -> None:
    found = checks(
        environment,
        newer,
        "recovery=0;fabric=3",
        {**L4, "requires__driver": ">=580", "requires__vram_bytes": 24 * 2**30, "card": CARD},
    )

    assert {name: found[name]["status"] for name in ALL} == dict.fromkeys(ALL, "pass")
    assert found["D01"]["message"] == "driver 580.82.07, for CUDA up to 13.0: NVIDIA L4"
    assert found["D03"]["message"] == "NVIDIA L4, compute capability 8.9"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("answers", "check", "status", "says", "fix"),
    [
        ("init=9", "D01", "fail", "is not loaded", "use a machine with a GPU"),
        ("init=18", "D01", "fail", "different versions", "restart the machine"),
        ("init=4", "D01", "fail", "does not have permission to use the driver", "/dev/nvidia"),
        ("init=999", "D01", "fail", "error 999", "restart"),
        ("handle=15", "D01", "fail", "a GPU is lost", "restart the machine"),
        ("count=0", "D01", "fail", "sees 0 GPUs, but the spec declares 1 x L4", "machine type"),
        ("count=2", "D01", "fail", "sees 2 GPUs", "gpu.count"),
        ("uncorrected=3", "D05", "fail", "3 uncorrected errors", "a different card"),
        ("remap_failed=1", "D05", "fail", "could not be remapped", "a different card"),
        ("remap_pending=1", "D05", "fail", "will be replaced", "restart the machine"),
        ("ecc=-3;remap_pending=-3", "D05", "skip", "do not report memory errors", ""),
        ("retired_pending=1", "D05", "fail", "will be retired", "restart the machine"),
        ("retired_pending=0", "D05", "pass", "no pages to retire", ""),
        (
            "uncorrected=-3",
            "D05",
            "warn",
            "the driver does not report the number of errors for 1 of 1 cards",
            "ECC",
        ),
        (
            "uncorrected=-3;remap_pending=-3",
            "D05",
            "warn",
            "does not report the number of errors",
            "M02",
        ),
        ("count=2;uncorrected@1=-3", "D05", "warn", "for 1 of 2 cards", "ECC"),
        ("mig=1", "D04", "unknown", "split into partitions (MIG)", "tier quick"),
        ("mig=1;total_mib=-4", "D04", "unknown", "split into partitions (MIG)", "tier quick"),
        ("ecc=0;uncorrected=3", "D05", "warn", "(ECC) for the card's memory is off", "turn ECC on"),
        ("lanes=8", "D09", "warn", "its PCIe link uses only 8 of 16 lanes", "another machine"),
        (
            "pcie_most=3",
            "D09",
            "warn",
            "the slot is PCIe 3, but the card is PCIe 4",
            "another machine",
        ),
        (
            "lanes=-3;pcie_most=-3;persistence=0",
            "D09",
            "pass",
            "full power limit, full PCIe link",
            "",
        ),
        ("reasons=8", "D06", "fail", "hardware slowdown", "another machine"),
        (
            "reasons=76",
            "D06",
            "fail",
            "hardware slowdown, hardware thermal slowdown",
            "another machine",
        ),
        ("reasons=7", "D06", "pass", "is not throttling", ""),
        ("used_mib=4000", "D08", "warn", "3.906 GiB of 22.49 GiB", "nvidia-smi"),
        (
            "total_mib=11517",
            "D04",
            "fail",
            "the GPU has 11.25 GiB of memory, but L4 has 21.9 GiB to 24.48 GiB",
            "machine type",
        ),
        ("total_mib=49140", "D04", "fail", "47.99 GiB", "machine type"),
        ("total_mib=24576", "D04", "pass", "24 GiB", ""),
        ("recovery=1", "D07", "fail", "a reset of the card", "restart the machine"),
        (
            "recovery=4",
            "D07",
            "fail",
            "all programs on the card be ended and the card be reset",
            "restart",
        ),
        ("recovery=9", "D07", "fail", "recovery action 9", "restart"),
        ("recovery=0", "D07", "pass", "no recovery action is needed", ""),
        ("fabric=2", "D07", "warn", "in progress", "nvidia-fabricmanager"),
        (
            "fabric=3;fabric_status=999",
            "D07",
            "warn",
            "failed with code 999",
            "nvidia-fabricmanager",
        ),
        ("", "D07", "skip", "neither recovery actions nor an NVLink fabric", ""),
        ("capability=-3", "D03", "pass", "compute capability unknown", ""),
        ("mig=1", "D09", "warn", "partitions", "another machine"),
        ("compute_mode=3", "D09", "warn", "one program at a time", "another machine"),
        ("compute_mode=2", "D09", "warn", "no program can use the card", "another machine"),
        ("power_limit_mw=40000", "D09", "warn", "40 W (the default is 72 W)", "another machine"),
    ],
)
def test_what_is_wrong_is_said_with_its_cure(
    environment: Environment,
    newer: Path,
    answers: str,
    check: str,
    status: str,
    says: str,
    fix: str,
) -> None:
    found = checks(environment, newer, answers, {**L4, "card": CARD})[check]

    assert (found["status"], says in found["message"]) == (status, True), found
    assert fix in (found.get("fix") or "")


def test_memory_that_the_driver_keeps_to_itself_is_unknown_with_a_way_out(
    environment: Environment, newer: Path
) -> None:
    found = checks(environment, newer, "total_mib=-4", {**L4, "requires__vram_bytes": 20 * 2**30})[
        "D04"
    ]

    assert (found["status"], found["message"]) == (
        "unknown",
        "no GPU reported its memory",
    )
    assert "tier quick" in found["fix"]


def test_an_old_driver_is_found_without_torch(environment: Environment, newer: Path) -> None:
    found = checks(
        environment,
        newer,
        changes={**L4, "requires__driver": ">=580"},
        FAKE_NVML_DRIVER="535.261.03",
    )

    assert found["D02"]["status"] == "fail"
    assert "535.261.03 does not satisfy >=580" in found["D02"]["message"]


def test_a_driver_older_than_the_locked_cuda_is_found_without_a_declared_one(
    environment: Environment, newer: Path
) -> None:
    found = checks(
        environment,
        newer,
        changes={**L4, "driver_min": "580.65.06", "flavour": "cu130"},
        FAKE_NVML_DRIVER="535.261.03",
    )

    assert (found["D02"]["status"], found["D02"]["required"]) == ("fail", True)
    assert (
        "535.261.03 does not satisfy >=580.65.06, which torch for cu130 requires"
        in found["D02"]["message"]
    )
    assert "CUDA release notes" in found["D02"]["threshold"]["source"]


@pytest.mark.parametrize("code", [0, 803])
def test_the_code_with_which_cuda_starts_is_asked_of_the_drivers_library(
    tmp_path: Path, code: int
) -> None:
    require("cc", compiler() is not None, "there is no C compiler here to make a libcuda with")
    (tmp_path / "cuda.c").write_text(
        f"int cuInit(unsigned flags) {{ return {code}; }}\n", encoding="ascii"
    )
    command = [
        str(compiler()),
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-o",
        str(tmp_path / "libcuda.so.1"),
        str(tmp_path / "cuda.c"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    ask = "from provision.agent.probe.observing.torch_build import init_code; print(init_code())"

    there, absent = (
        subprocess.run(
            [sys.executable, "-c", ask],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        ).stdout
        for folder in (tmp_path, tmp_path / "nowhere")
    )

    assert there.strip() == str(code)
    assert absent.strip() != "803"


@pytest.mark.parametrize(
    ("code", "says"),
    [("return *(volatile int *)0;", "ended by SIGSEGV"), ("abort();", "ended by SIGABRT")],
)
def test_a_library_of_the_driver_that_crashes_is_a_result_and_the_rest_is_still_looked_at(
    environment: Environment, tmp_path: Path, code: str, says: str
) -> None:
    require("cc", compiler() is not None, "there is no C compiler here to make a libnvidia-ml with")
    (tmp_path / "crash.c").write_text(
        f"#include <stdlib.h>\nint nvmlInit_v2(void) {{ {code} }}\n", encoding="ascii"
    )
    command = [
        str(compiler()),
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(tmp_path / "libnvidia-ml.so.1"),
        str(tmp_path / "crash.c"),
    ]
    subprocess.run(command, check=True, capture_output=True)

    found = checks(environment.add("alpha"), tmp_path)

    assert (found["D01"]["status"], found["D03"]["status"], found["P02"]["status"]) == (
        "fail",
        "unknown",
        "pass",
    )
    assert says in found["D01"]["message"]
    assert found["D01"]["fix"]


def test_the_older_name_of_the_reasons_is_asked_where_the_newer_is_not_there(
    environment: Environment, library: Callable[..., Path]
) -> None:
    found = checks(environment, library("-DOLD_NAMES"), "reasons=64")

    assert "hardware thermal slowdown" in found["D06"]["message"]


def test_who_holds_the_card_is_named(environment: Environment, newer: Path) -> None:
    found = checks(environment, newer, "used_mib=4000;holder=4711")

    assert "process 4711" in found["D08"]["cause"]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("name", "answers", "status", "says"),
    [
        ("Tesla T4", "pci=515379422", "fail", "the GPU is Tesla T4, but L4 is declared"),
        (
            "Graphics Device",
            "",
            "pass",
            "Graphics Device",
        ),  # a card that the driver has no name for is known by its PCI id
        ("Graphics Device", "pci=515379422", "fail", "L4 is declared"),
        ("NVIDIA L40", "pci=649400542", "fail", "the GPU is NVIDIA L40"),
    ],
)
def test_another_card_is_named_before_torch_is_asked(
    environment: Environment, newer: Path, name: str, answers: str, status: str, says: str
) -> None:
    found = checks(environment, newer, answers, FAKE_NVML_NAME=name)["D03"]

    assert (found["status"], says in found["message"]) == (status, True), found


def test_without_the_library_the_program_is_asked(environment: Environment, tmp_path: Path) -> None:
    found = checks(
        environment,
        make_program(tmp_path),
        changes={**L4, "card": CARD},
        PATH=f"{tmp_path}:/usr/bin:/bin",
        FAKE_SMI=told(SMI),
    )

    assert found["D01"]["message"] == "driver 580.82.07, reported by nvidia-smi: NVIDIA L4"
    assert {name: found[name]["status"] for name in ALL} == {
        **dict.fromkeys(ALL, "pass"),
        "D02": "skip",
        "D07": "skip",
    }


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("change", "check", "status", "says"),
    [
        ({"name": "Tesla T4", "pci.device_id": "0x1EB810DE"}, "D03", "fail", "the GPU is Tesla T4"),
        ({"memory.total": "11517"}, "D04", "fail", "11.25 GiB"),
        ({"memory.used": "[N/A]"}, "D08", "skip", "do not report"),
        ({"retired_pages.pending": "Yes"}, "D05", "fail", "will be retired"),
        ({"retired_pages.pending": "No"}, "D05", "pass", "no pages to retire"),
        (
            {"ecc.errors.uncorrected.volatile.total": "[N/A]"},
            "D05",
            "warn",
            "does not report the number of errors",
        ),
        ({"mig.mode.current": "Enabled"}, "D04", "unknown", "split into partitions"),
        ({"ecc.errors.uncorrected.volatile.total": "2"}, "D05", "fail", "2 uncorrected errors"),
        (
            {"clocks_event_reasons.active": "0x0000000000000048"},
            "D06",
            "fail",
            "hardware slowdown, hardware thermal slowdown",
        ),
        (
            {
                "clocks_event_reasons.active": "",
                "clocks_throttle_reasons.active": "0x0000000000000040",
            },
            "D06",
            "fail",
            "hardware thermal slowdown",
        ),
        ({"mig.mode.current": "Enabled"}, "D09", "warn", "partitions"),
        ({"compute_mode": "Exclusive_Process"}, "D09", "warn", "one program at a time"),
        ({"power.limit": "40.00"}, "D09", "warn", "40 W (the default is 72 W)"),
    ],
)
def test_what_the_program_tells_is_judged_alike(
    environment: Environment,
    tmp_path: Path,
    change: dict[str, str],
    check: str,
    status: str,
    says: str,
) -> None:
    answers = told(
        {key: value for key, value in {**SMI, **change}.items() if value}
    )  # an empty one is a field that this nvidia-smi does not know
    found = checks(
        environment,
        make_program(tmp_path),
        changes={**L4, "card": CARD},
        PATH=f"{tmp_path}:/usr/bin:/bin",
        FAKE_SMI=answers,
    )[check]

    assert (found["status"], says in found["message"]) == (status, True), found


def test_an_old_program_that_knows_few_fields_still_tells_the_card(
    environment: Environment, tmp_path: Path
) -> None:
    few = told({key: SMI[key] for key in ("driver_version", "name", "memory.total", "memory.used")})
    found = checks(
        environment,
        make_program(tmp_path),
        changes={**L4, "card": CARD},
        PATH=f"{tmp_path}:/usr/bin:/bin",
        FAKE_SMI=few,
    )

    assert {found[name]["status"] for name in ("D01", "D03", "D04", "D08")} == {"pass"}
    assert {found[name]["status"] for name in ("D05", "D06", "D07", "D09")} == {"skip"}


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("9", "is not loaded"),
        ("15", "a GPU is lost"),
        ("18", "different versions"),
        ("6", "finds no GPU"),
        ("12", "no NVIDIA driver"),
        ("3", "error 3"),
    ],
)
def test_a_program_that_fails_tells_why_by_its_exit_code(
    environment: Environment, tmp_path: Path, code: str, says: str
) -> None:
    found = checks(
        environment, make_program(tmp_path), PATH=f"{tmp_path}:/usr/bin:/bin", FAKE_SMI_EXIT=code
    )["D01"]

    assert (found["status"], says in found["message"]) == ("fail", True), found


def test_a_library_that_lacks_a_function_gives_way_to_the_program(
    environment: Environment, library: Callable[..., Path], tmp_path: Path
) -> None:
    folder = library("-DNO_COUNT")
    asked = checks(
        environment, folder, PATH=f"{make_program(tmp_path)}:/usr/bin:/bin", FAKE_SMI=told(SMI)
    )
    alone = checks(environment, folder, PATH="/usr/bin:/bin")

    assert "reported by nvidia-smi" in asked["D01"]["message"]
    assert alone["D01"]["status"] == "fail"


def test_a_card_that_gets_hot_at_work_is_seen(environment: Environment, newer: Path) -> None:
    code = (
        "import os, time\nos.environ['FAKE_NVML'] = "
        "'reasons=64'\ntime.sleep(0.6)\nos.environ['FAKE_NVML'] = ''\n"
    )
    _, report, said = environment.add("alpha", code).verify(
        environ={"LD_LIBRARY_PATH": str(newer)}, gpu={"type": "L4", "count": 1}
    )
    found = {check["id"]: check for check in report["checks"]}["D06"]

    assert found["status"] == "fail", said
    assert (
        found["message"] == "the card is throttling under load (imports): hardware thermal slowdown"
    )
    assert {"key": "nvml.slowed", "value": [], "class": "context"} in report["readings"]


def test_a_card_that_stays_cool_at_work_passes(environment: Environment, newer: Path) -> None:
    _, report, _ = environment.add("alpha").verify(
        environ={"LD_LIBRARY_PATH": str(newer)}, gpu={"type": "L4", "count": 1}
    )

    assert {check["id"]: check for check in report["checks"]}["D06"][
        "message"
    ] == "the card is not throttling, idle or under load"


def test_without_library_and_program_there_is_no_driver(
    environment: Environment, tmp_path: Path
) -> None:
    found = checks(environment, tmp_path, PATH="/usr/bin:/bin")

    assert found["D01"]["status"] == "fail"
    assert "no NVIDIA driver" in found["D01"]["message"]


def test_without_a_declared_card_nothing_is_asked(environment: Environment, newer: Path) -> None:
    found = checks(environment, newer, "init=9", changes={"tier": "inventory"})

    assert found["D01"]["status"] == "skip"
