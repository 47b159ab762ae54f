"""Which code runs on which card, which driver runs which build: documented cases, and the rule
itself.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.diagnostics import Severity
from provision.facts import Evidence, TorchBuild, load_facts
from provision.facts.compatibility import (
    CodeForm,
    DeviceCode,
    IncompatibilityKind,
    code_for_capability,
    is_driver_at_least,
    runs_machine_code,
)

FACTS = load_facts()
EVIDENCE = Evidence("a test", "2026-11-20", "high")


def made_for(*sm: str, ptx: str = "") -> TorchBuild:
    return TorchBuild("2.13.0", "cu130", "linux-x86_64", sm, EVIDENCE, ptx)


@pytest.mark.parametrize(
    ("card", "torch", "flavour", "covered"),
    [
        ("P100", "2.10.0", "cu128", False),  # Kaggle/docker-python#1546
        ("P100", "2.10.0", "cu126", True),
        ("V100", "2.11.0", "cu128", False),  # dev-discuss.pytorch.org 3290
        ("V100", "2.10.0", "cu128", True),
        ("V100", "2.7.0", "cu128", False),
        ("V100", "2.14.1", "cu126", True),
        ("V100", "2.15.0", "cu132", False),  # dev-discuss.pytorch.org 3432
        ("T4", "2.13.0", "cu130", True),
        ("L4", "2.0.1", "cu117", True),  # 8.9 runs code made for 8.6
        ("H100", "2.0.1", "cu117", False),
        ("H100", "2.0.1", "cu118", True),
        ("B200", "2.6.0", "cu126", False),
        ("B200", "2.7.0", "cu128", True),
        ("B300", "2.13.0", "cu130", True),  # 10.3 runs code made for 10.0
        ("RTX-5090", "2.6.0", "cu124", False),  # pytorch/pytorch#150733
        ("RTX-5090", "2.8.0", "cu128", True),
        ("K80", "2.7.0", "cu118", True),
        ("K80", "2.7.0", "cu126", False),
        ("GTX-1080-Ti", "2.8.0", "cu128", False),
        ("GTX-1080-Ti", "2.8.0", "cu126", True),  # 6.1 runs code made for 6.0
    ],
)
def test_documented_cases(card: str, torch: str, flavour: str, covered: bool) -> None:
    found, build = FACTS.card(card), FACTS.build(torch, flavour)
    assert found is not None
    assert build is not None
    assert FACTS.has_code_for(found, build) is covered
    assert (build in FACTS.builds_for_card(found, torch)) is covered


def test_aarch64_has_its_own_code() -> None:
    build = FACTS.build("2.13.0", "cu130", "linux-aarch64")
    gb10, gb300, orin = (FACTS.card(name) for name in ("GB10", "GB300", "Jetson-AGX-Orin"))
    assert build is not None
    assert gb10
    assert gb300
    assert orin
    assert FACTS.code_for(gb10, build) == DeviceCode(CodeForm.MACHINE, "12.0")
    assert FACTS.code_for(gb300, build) == DeviceCode(CodeForm.MACHINE, "10.0")
    assert FACTS.code_for(orin, build) is None


@pytest.mark.parametrize(
    ("device", "code", "runs"),
    [
        ("8.9", "8.6", True),
        ("8.6", "8.9", False),
        ("8.7", "8.6", False),  # the exceptions of torch: integrated GPUs
        ("8.7", "8.7", True),
        ("7.2", "7.0", False),
        ("6.2", "6.1", False),
        ("5.3", "5.2", False),
        ("11.0", "10.1", True),
        ("10.1", "10.0", False),
        ("10.3", "10.0", True),
        ("9.0", "8.9", False),
        ("12.1", "12.0", True),
        ("12.0", "10.0", False),
    ],
)
def test_machine_code_runs_on_its_major_and_a_minor_at_least_its_own(
    device: str, code: str, runs: bool
) -> None:
    assert runs_machine_code(device, code, FACTS.capabilities) is runs


def test_ptx_runs_on_what_is_newer_and_never_on_what_is_older() -> None:
    build = made_for("8.0", "9.0", ptx="9.0")
    assert code_for_capability("12.0", build, FACTS.capabilities) == DeviceCode(CodeForm.PTX, "9.0")
    assert code_for_capability("9.0", build, FACTS.capabilities) == DeviceCode(
        CodeForm.MACHINE, "9.0"
    )
    assert code_for_capability("7.5", build, FACTS.capabilities) is None
    assert code_for_capability("12.0", made_for("8.0", "9.0"), FACTS.capabilities) is None


def test_the_nearest_code_is_taken() -> None:
    assert code_for_capability(
        "8.9", made_for("8.0", "8.6", "9.0"), FACTS.capabilities
    ) == DeviceCode(CodeForm.MACHINE, "8.6")


_CC = st.sampled_from(sorted(FACTS.capabilities))


@given(
    _CC, st.lists(_CC, max_size=4, unique=True), st.sampled_from(["", *sorted(FACTS.capabilities)])
)
def test_more_code_never_covers_less(device: str, sm: list[str], ptx: str) -> None:
    if code_for_capability(device, made_for(*sm), FACTS.capabilities) is not None:
        assert code_for_capability(device, made_for(*sm, ptx=ptx), FACTS.capabilities) is not None
        assert code_for_capability(device, made_for(*sm, "9.0"), FACTS.capabilities) is not None


def test_what_has_no_row_is_unknown() -> None:
    t4 = FACTS.card("T4")
    assert t4 is not None
    assert FACTS.build("99.0", "cu128") is None
    assert FACTS.build("2.13.0", "cu999") is None
    assert FACTS.build("2.13.0", "cpu") is None
    assert FACTS.build("2.13.0", "cu130", "windows-x86_64") is None
    assert FACTS.builds_for_card(t4, "99.0") == ()
    assert FACTS.can_run("580.65.06", None, t4) is None
    assert FACTS.can_run("nonsense", FACTS.build("2.13.0", "cu130"), t4) is None
    assert FACTS.driver_floor("99.9") is None
    assert FACTS.driver_floor("12.7") is None
    assert FACTS.has_feature(t4._replace(cc="99.0"), "bf16") is None


@pytest.mark.parametrize(
    ("cuda", "linux", "windows"),
    [
        ("11.8", "450.80.02", "452.39"),
        ("12.8", "525.60.13", "528.33"),
        ("13.2", "580.65.06", "580"),
    ],
)
def test_driver_floors_hold_for_a_cuda_major(cuda: str, linux: str, windows: str) -> None:
    assert (FACTS.driver_floor(cuda), FACTS.driver_floor(cuda, windows=True)) == (linux, windows)


@pytest.mark.parametrize(
    ("card", "branch"),
    [
        ("K80", "470"),
        ("P100", "580"),
        ("V100", "580"),
        ("GTX-1080", "580"),
        ("T4", None),
        ("L4", None),
    ],
)
def test_driver_ceilings(card: str, branch: str | None) -> None:
    found = FACTS.card(card)
    assert found is not None
    last = FACTS.last_driver_branch(found)
    assert (last.branch if last else None) == branch


@pytest.mark.parametrize(
    ("driver", "floor", "answer"),
    [
        ("535.1", "525.60.13", True),
        ("525", "525.60.13", True),
        ("520.61", "525.60.13", False),
        ("x", "1", None),
    ],
)
def test_a_driver_against_a_floor(driver: str, floor: str, answer: bool | None) -> None:
    assert is_driver_at_least(driver, floor) is answer


@pytest.mark.parametrize(
    ("driver", "torch", "flavour", "card", "hindrances"),
    [
        ("535.104.05", "2.10.0", "cu128", "L4", []),  # minor-version compatibility
        ("535.104.05", "2.11.0", "cu130", "L4", [IncompatibilityKind.DRIVER_TOO_OLD]),
        ("580.65.06", "2.15.0", "cu132", "T4", []),
        ("595.58.03", "2.14.1", "cu126", "V100", [IncompatibilityKind.DRIVER_AFTER_CARD]),
        ("580.95.05", "2.14.1", "cu126", "V100", []),
        ("580.95.05", "2.11.0", "cu128", "V100", [IncompatibilityKind.NO_CODE]),
        (
            "595",
            "2.15.0",
            "cu132",
            "P100",
            [IncompatibilityKind.NO_CODE, IncompatibilityKind.DRIVER_AFTER_CARD],
        ),
        ("535", "2.8.0", "cu128", "B200", [IncompatibilityKind.DRIVER_BEFORE_CARD]),
        (
            "510.47.03",
            "2.8.0",
            "cu128",
            "L4",
            [IncompatibilityKind.DRIVER_TOO_OLD, IncompatibilityKind.DRIVER_BEFORE_CARD],
        ),
    ],
)
def test_what_keeps_a_build_from_running(
    driver: str, torch: str, flavour: str, card: str, hindrances: list[IncompatibilityKind]
) -> None:
    found, build = FACTS.card(card), FACTS.build(torch, flavour)
    assert found is not None
    assert build is not None
    obstacles = FACTS.incompatibilities(driver, build, found)
    assert [one.kind for one in obstacles] == hindrances
    assert all(one.evidence for one in obstacles)
    assert FACTS.can_run(driver, build, found) is (not hindrances)


def test_ptx_asks_for_a_driver_of_its_own_cuda() -> None:
    card = FACTS.card("RTX-5090")
    assert card is not None
    by_ptx = made_for("9.0", ptx="9.0")._replace(flavour="cu132")
    old, new = (
        FACTS.incompatibilities("580.65.06", by_ptx, card),
        FACTS.incompatibilities("595.58.03", by_ptx, card),
    )
    assert [(one.kind, one.required) for one in old] == [
        (IncompatibilityKind.PTX_NEEDS_DRIVER, "595.45.04")
    ]
    assert new == ()


@pytest.mark.parametrize(
    ("card", "has", "has_not"),
    [
        ("P100", set(), {"tensor_cores", "bf16", "tf32", "fp8"}),
        ("T4", {"tensor_cores"}, {"bf16", "tf32", "fp8"}),
        ("A100", {"tensor_cores", "bf16", "tf32"}, {"fp8", "fp4"}),
        ("L4", {"bf16", "tf32", "fp8"}, {"fp4"}),
        ("B200", {"bf16", "tf32", "fp8", "fp4"}, set()),
        ("GTX-1660", set(), {"tensor_cores", "bf16"}),
    ],
)
def test_features(card: str, has: set[str], has_not: set[str]) -> None:
    found = FACTS.card(card)
    assert found is not None
    assert all(FACTS.has_feature(found, name) is True for name in has)
    assert all(FACTS.has_feature(found, name) is False for name in has_not)


def test_the_c_library_a_place_has() -> None:
    assert FACTS.systems["Ubuntu 22.04"].glibc == "2.35"
    assert FACTS.systems[FACTS.images["workbench-instances"].os].glibc == "2.31"
    assert FACTS.runtimes["2026.07"].glibc == "2.35"
    assert FACTS.images["workbench-container-host"].os not in FACTS.systems
    old, new = FACTS.torch_release("2.6.0"), FACTS.torch_release("2.7.0")
    assert old is not None
    assert new is not None
    assert (old.glibc, old.glibc_aarch64, new.glibc) == ("2.17", "2.28", "2.28")


def test_the_default_of_the_public_index() -> None:
    new, old = FACTS.torch_release("2.11.0"), FACTS.torch_release("2.10.0")
    assert new is not None
    assert old is not None
    assert [
        new.default_on(platform)
        for platform in ("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64")
    ] == ["cu130", "cu130", "cpu", "cpu"]
    assert old.default_on("linux-aarch64") == "cpu"


def test_machines_and_attachments() -> None:
    assert [row.name for row in FACTS.machines_with("L4")][:2] == ["g2-standard-4", "g2-standard-8"]
    assert [row.name for row in FACTS.machines_with("A100-80GB", 2)] == ["a2-ultragpu-2g"]
    assert FACTS.machines_with("T4") == ()
    most = FACTS.attachment("T4", 4)
    assert most is not None
    assert (most.vcpus_max, most.ram_max_gb) == (96, 624)
    assert FACTS.attachment("T4", 3) is None
    assert FACTS.attachment("L4") is None


def test_the_driver_of_an_image() -> None:
    before, after = (
        FACTS.image_driver("workbench-instances-2603", "20260802"),
        FACTS.image_driver("workbench-instances-2603", "20261004"),
    )
    assert before is not None
    assert after is not None
    assert (before.driver, after.driver) == ("580.65.06", "580.126.20")
    assert FACTS.image_driver("workbench-instances-2603", "20260101") is None
    assert FACTS.image_driver("workbench-instances", "20260713") is None


def test_what_is_not_sure_may_warn_and_never_fail() -> None:
    low, medium = Evidence("x", "2026-11-20", "low"), Evidence("x", "2026-11-20", "medium")
    assert low.cap_severity(Severity.ERROR) is Severity.WARNING
    assert low.cap_severity(Severity.INFO) is Severity.INFO
    assert medium.cap_severity(Severity.ERROR) is Severity.ERROR
    assert (low.is_sure, medium.is_sure) == (False, True)


def test_precisions_of_apple_silicon() -> None:
    assert (FACTS.mps["bf16"].torch, FACTS.mps["bf16"].macos) == ("2.6.0", "14.0")
    assert "fp8" not in FACTS.mps
    assert all(FACTS.torch_release(row.torch) is not None for row in FACTS.mps.values())
