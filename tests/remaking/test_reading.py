"""What the scripts read out of wheels, on small wheels made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import remake_cuda
import remake_packages
import remake_torch
import remake_transformers
from remaking.declaring import declared, in_runs, linux_wheel, newest_of_minors
from remaking.wheels import Shelf, bound, constants, requirements
from tests.remaking.serving import Folder, wheel

PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


def shelf(tmp_path: Path, *made: dict[str, bytes]) -> Shelf:
    """A shelf of wheels."""
    return Shelf(
        Folder({name: content for each in made for name, content in each.items()}),
        tmp_path / "cache",
    )


# torch


@pytest.mark.parametrize(
    ("flags", "read"),
    [
        (
            "-gencode;arch=compute_75,code=sm_75;-gencode;arch=compute_120,code=sm_120",
            {"sm": "7.5 12.0", "ptx": ""},
        ),
        (
            "-gencode;arch=compute_120,code=sm_120;-gencode;arch=compute_80,code=sm_80",
            {"sm": "8.0 12.0", "ptx": ""},
        ),
        (
            "-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_120,code=compute_120",
            {"sm": "9.0", "ptx": "12.0"},
        ),
        (
            "-gencode;arch=compute_90,code=[sm_90,compute_90];-D__X=sm_10",
            {"sm": "9.0", "ptx": "9.0"},
        ),
        ("", {"sm": "", "ptx": ""}),
    ],
)
def test_code_that_the_compiler_was_told_to_make(flags: str, read: dict[str, str]) -> None:
    assert remake_torch.targets(f'#pragma once\n#define NVCC_FLAGS_EXTRA "{flags}"\n') == read


def test_a_wheel_without_flags_says_nothing_of_its_code() -> None:
    assert remake_torch.targets("#pragma once\n") == {"sm": "", "ptx": ""}


@pytest.mark.parametrize(
    ("source", "flavour"),
    [
        ("cuda: Optional[str] = '13.2'", "cu132"),
        ("cuda = '10.2'", "cu102"),
        ("cuda: Optional[str] = None", "cpu"),
        ("cuda = None", "cpu"),
        ("", "cpu"),
    ],
)
def test_the_flavour_of_a_wheel(source: str, flavour: str) -> None:
    assert remake_torch.flavour_of(f"__version__ = '2.0'\n{source}\ngit_version = 'x'\n") == flavour


def test_what_a_release_says_of_its_other_builds() -> None:
    source = (
        "PYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {'12.6': {'x86_64': {90, "
        "50}, 'aarch64': {80}}, '13.0': {'aarch64': {120}}}"
    )
    assert remake_torch.others(source, "x86_64") == {"cu126": "5.0 9.0"}
    assert remake_torch.others(source, "aarch64") == {"cu126": "8.0", "cu130": "12.0"}
    assert (
        remake_torch.others(
            "PYTORCH_RELEASES_CODE_CC: dict[str, set[int]] = {'12.6': {50, 60}}", "x86_64"
        )
        == {}
    )  # one list for all machines


def _torch(
    version: str, tag: str, cuda: str = "'13.0'", flags: str = "code=sm_80;", *requires: str
) -> dict[str, bytes]:
    header = f'#define NVCC_FLAGS_EXTRA "{flags}"\n'
    members = {
        "torch/version.py": f"cuda: Optional[str] = {cuda}\n",
        "torch/include/ATen/cuda/CUDAConfig.h": header,
        "torch/cuda/__init__.py": "x = 1\n",
    }
    return wheel(
        "torch",
        version,
        tag,
        head="\n".join(
            ("Requires-Python: >=3.10.0", *(f"Requires-Dist: {line}" for line in requires))
        ),
        members=members,
    )


UNTOUCHED = {
    "released": "2023-03-15",
    "builds": {"cu117": "high", "cu118": "high"},
    "torchvision": [],
    "torchaudio": [],
}
READ = {
    "default": "cu117",
    "python": ">=3.8",
    "pythons": ["3.8"],
    "glibc": "2.17",
    "triton": "2.0.0",
    "cudnn": "",
    "nccl": "",
    "cuda_runtime": "",
}
KNOWN: list[dict[str, Any]] = [{"release": "2.0.0", **UNTOUCHED, **READ}]


def test_a_release_as_its_wheels_have_it(tmp_path: Path) -> None:
    asks = (
        "nvidia-cudnn-cu13==9.1",
        "cuda-toolkit[cudart]==13.0.2; platform_system == 'Linux'",
        "triton~=3.8.0",
    )
    held = shelf(
        tmp_path,
        _torch("2.1.0", "cp310-cp310-manylinux_2_28_x86_64", "'13.0'", "code=sm_80;", *asks),
        _torch("2.1.0", "cp39-cp39-manylinux_2_28_x86_64", "'13.0'", "code=sm_80;", *asks),
        _torch("2.1.0", "cp314-cp314t-manylinux_2_28_x86_64"),
        _torch("2.1.0", "cp310-cp310-manylinux2014_aarch64", "None"),
        _torch("2.1.0", "cp311-cp311-win_amd64", "None"),
    )
    old, new = remake_torch.read(held, KNOWN)
    assert old == KNOWN[0]  # the index has it no longer
    assert new == {
        "release": "2.1.0", "released": "", "default": "cu130", "builds": {"cu130": "high"}, "python": ">=3.10", "pythons": ["3.9", "3.10"],  # noqa: E501
        "pythons_aarch64": ["3.10"], "pythons_windows": ["3.11"], "pythons_macos": [], "pythons_macos_x86_64": [],  # noqa: E501
        "glibc": "2.28", "glibc_aarch64": "2.17", "triton": "~=3.8.0", "cudnn": "9.1", "nccl": "", "cuda_runtime": "13.0.2",  # noqa: E501
    }  # fmt: skip


def test_columns_of_other_sources_stay(tmp_path: Path) -> None:
    (row,) = remake_torch.read(
        shelf(tmp_path, _torch("2.0.0", "cp310-cp310-manylinux1_x86_64", "'11.7'")), KNOWN
    )
    assert (row["builds"], row["released"], row["glibc"]) == (
        {"cu117": "high", "cu118": "high"},
        "2023-03-15",
        "2.17",
    )
    assert (row["pythons"], row["triton"]) == (["3.10"], "")


def test_code_of_builds(tmp_path: Path) -> None:
    named = [{"release": "2.1.0", "builds": {"cu130": "high", "cu118": "high"}}]
    known = [
        {"release": "2.1.0", "flavour": "cu118", "platform": "linux-x86_64", "sm": "5.0"},
        {
            "release": "2.1.0",
            "flavour": "cu130",
            "platform": "linux-x86_64",
            "sm": "7.5",
            "ptx": "7.5",
            "confidence": "medium",
        },
    ]
    found = remake_torch.code(
        shelf(tmp_path, _torch("2.1.0", "cp310-cp310-manylinux_2_28_x86_64")), known, named
    )
    assert found == [
        known[0],
        {
            "release": "2.1.0",
            "flavour": "cu130",
            "platform": "linux-x86_64",
            "sm": "8.0",
            "confidence": "medium",
        },
    ]


def test_companions(tmp_path: Path) -> None:
    named = {
        "0.3.0": "torch>=1.1.0",
        "0.13.0": "torch (==1.12.0)",
        "0.14.0": "torch==1.13.0",
        "0.15.0": "torch>=1.13",
        "0.16.0": "torch",
        "0.17.0": "numpy",
    }
    made = [
        wheel(
            "torchvision", version, "cp310-cp310-manylinux1_x86_64", head=f"Requires-Dist: {asks}"
        )
        for version, asks in named.items()
    ]
    made += [
        wheel("torchvision", "0.13.0", "cp310-cp310-macosx_11_0_arm64", head="Requires-Dist: torch")
    ]
    rows = [{"release": release} for release in ("1.13.0", "1.14.0")]
    found = remake_torch.companions(shelf(tmp_path, *made), rows)
    assert [(row["torchvision"], row["torchaudio"]) for row in found] == [
        (["0.14.0", "0.15.0"], []),
        (["0.15.0"], []),
    ]


# What packages declare


def test_requirements_in_both_spellings(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        wheel(
            "pkg",
            "1.0",
            head="Requires-Dist: triton (==2.0.0) ; platform_system == 'Linux'\nRequires-Dist: "
            "huggingface_hub<1.0,>=0.1",
        ),
    )
    (files,) = held.releases("pkg").values()
    asked = requirements(held.wheel(files[0]).metadata())
    assert declared(asked, ("triton", "huggingface-hub", "numpy"), PYTHONS) == {
        "triton": "==2.0.0",
        "huggingface-hub": "<1.0,>=0.1",
    }


@pytest.mark.parametrize(
    ("lines", "name", "read"),
    [
        (
            ['numpy>=1.22.4; python_version < "3.11"', 'numpy>=1.26.0; python_version >= "3.12"'],
            "numpy",
            ">=1.22.4",
        ),
        (["numpy>=1.24", 'numpy>=1.26.0; python_version >= "3.12"'], "numpy", ">=1.24"),
        (["numpy>=1.24,<3", "numpy>=1.26.0"], "numpy", "<3,>=1.26.0"),
        (
            ["transformers>=4.56.1", 'transformers!=4.57.0; python_version == "3.9"'],
            "transformers",
            ">=4.56.1",
        ),
        (['torch>=2.0; extra == "torch"', "torch; extra == 'dev'"], "torch[torch]", ">=2.0"),
        (['torch>=2.0; extra == "torch"'], "torch", None),
        (["torch>=2.0"], "torch[torch]", None),
        (['torch>=2.0; sys_platform == "win32"'], "torch", None),
        (['torch>=2.0; python_version < "3.9"'], "torch", None),
        (["Torch"], "torch", ""),
    ],
)
def test_what_a_wheel_declares(lines: list[str], name: str, read: str | None) -> None:
    assert declared([Requirement(line) for line in lines], (name,), PYTHONS).get(name) == read


def test_a_bound_is_written_in_one_way() -> None:
    assert bound(Requirement("x >= 1.0 , <2, != 1.5").specifier) == "!=1.5,<2,>=1.0"


def test_the_newest_patch_of_each_minor_and_runs_of_equal_ones() -> None:
    found = newest_of_minors(
        {Version(text): [] for text in ("1.0.0", "1.1.0", "1.1.2", "1.2.0", "2.0.0")}, "1.1.1"
    )
    assert [str(version) for version in found] == ["1.1.2", "1.2.0", "2.0.0"]
    rows = [(version, {"python": ">=3" if version.major == 1 else ""}) for version in found]
    assert list(in_runs(rows)) == [
        {"first": "1.1.2", "last": "1.2.0", "python": ">=3"},
        {"first": "2.0.0", "last": "2.0.0", "python": ""},
    ]


def test_the_wheel_that_linux_takes() -> None:
    tags = (
        "cp39-cp39-manylinux1_x86_64",
        "cp310-cp310-manylinux1_x86_64",
        "cp311-cp311t-manylinux1_x86_64",
        "cp312-cp312-win_amd64",
        "cp313-cp313-manylinux2014_aarch64",
    )
    names = {name: b"" for tag in tags for name in wheel("pkg", "1.0", tag)}
    assert "cp310" in linux_wheel(Folder(names).wheels("pkg")).name


def test_constants_are_read_as_text_and_nothing_runs() -> None:
    source = (
        'raise SystemExit\nA_MIN_VERSION = "1.0"\nB_MIN_VERSION: str = "2.0"\nC_MIN_VERSION = '
        'f()\nD = "3"\ndef f():\n    E_MIN_VERSION = "4"\n'
    )
    assert constants(source, "_MIN_VERSION") == {"A": "1.0", "B": "2.0"}
    assert constants("", "_MIN_VERSION") == {}


def test_the_runs_of_a_package(tmp_path: Path) -> None:
    known = [
        {
            "package": "trl",
            "first": "0.1.0",
            "last": "0.1.0",
            "python": "",
            "declared": {"torch": ""},
            "floors": {"liger-kernel": "0.1"},
        }
    ]
    own = {"trl/import_utils.py": 'LIGER_KERNEL_MIN_VERSION = "0.5"\nOTHER_MIN_VERSION = "1"\n'}
    made = [
        wheel(
            "trl",
            version,
            head="Requires-Python: >=3.9.0\nRequires-Dist: torch>=2\nRequires-Dist: rich",
            members=own,
        )
        for version in ("0.1.0", "0.1.1", "0.2.0")
    ]
    assert remake_packages.read(shelf(tmp_path, *made, wheel("trl", "0.0.9")), known, PYTHONS) == [
        {
            "package": "trl",
            "first": "0.1.1",
            "last": "0.2.0",
            "python": ">=3.9",
            "declared": {"torch": ">=2"},
            "floors": {"liger-kernel": "0.5"},
        }
    ]


# transformers


def _transformers(version: str, source: str, *requires: str) -> dict[str, bytes]:
    head = "\n".join(("Requires-Python: >=3.9.0", *(f"Requires-Dist: {line}" for line in requires)))
    return wheel(
        "transformers", version, head=head, members={"transformers/utils/import_utils.py": source}
    )


def test_runs_of_transformers(tmp_path: Path) -> None:
    off = (
        'def f(v):\n    warn(f"Disabling PyTorch because PyTorch >= 2.4 is required but found '
        '{v}")\n'
    )
    source = (
        f'{off}ACCELERATE_MIN_VERSION = "1.1.0"\nFSDP_MIN_VERSION = '
        '"1.12.0"\nKERNELS_MIN_VERSION = "0.9"\nKERNELS_MAX_VERSION = "0.16"\n'
    )
    held = shelf(
        tmp_path,
        _transformers(
            "4.30.0",
            "",
            "numpy>=1.17",
            'torch>=1.9,!=1.12.0; extra == "torch"',
            'accelerate>=0.20.2; extra == "torch"',
            "requests",
        ),
        _transformers("5.0.0", source, "numpy>=1.17", "torch; extra == 'torch'"),
        _transformers("5.1.0", source, "numpy>=1.17", "torch; extra == 'torch'"),
    )
    old, new = remake_transformers.read(held, [{"first": "4.30.0"}], PYTHONS)
    assert old == {
        "first": "4.30.0",
        "last": "4.30.0",
        "python": ">=3.9",
        "accelerate": "0.20.2",
        "torch": None,
        "declared": {"numpy": ">=1.17", "torch": "!=1.12.0,>=1.9"},
    }
    assert new == {"first": "5.0.0", "last": "5.1.0", "python": ">=3.9", "accelerate": "1.1.0", "torch": "2.4", "declared": {"numpy": ">=1.17"},  # noqa: E501
                   "floors": {"kernels": "0.9"}, "ceilings": {"kernels": "0.16"}}  # fmt: skip


# CUDA


def _toolkit(cuda: str, floor: str = "580") -> dict[str, Any]:
    common = {
        "driver_first": None,
        "driver_bundled": None,
        "floor_linux": floor,
        "floor_windows": floor,
    }
    return {
        "cuda": cuda,
        "capabilities": "7.5",
        "cc_min": "7.5",
        "cc_max": "7.5",
        "gcc_max": 1,
        **common,
    }


def _cuda(version: str, gcc: int, program: bytes) -> dict[str, bytes]:
    header = f"#if defined(__GNUC__)\n\n#if __GNUC__ > {gcc}\n\n#error -- unsupported\n"
    return {
        **wheel("nvidia-cuda-crt", version, members={"x/include/crt/host_config.h": header}),
        **wheel("nvidia-cuda-nvcc", version, members={"x/bin/nvcc": program}),
    }


PROGRAM = b"\0sm_20\0compute_75\0sm_75\0compute_120\0sm_120\0sm_120a\0x sm_99\0"


def test_toolkits(tmp_path: Path) -> None:
    held = shelf(
        tmp_path,
        _cuda("13.0.88", 15, PROGRAM),
        _cuda("13.1.1", 16, PROGRAM),
        _cuda("13.1.0", 9, b""),
        _cuda("14.0.1", 17, PROGRAM),
    )
    assert remake_cuda.read(held, [_toolkit("13.0")]) == [
        {**_toolkit("13.0"), "capabilities": "7.5 12.0", "cc_max": "12.0", "gcc_max": 15},
        {**_toolkit("13.1"), "capabilities": "7.5 12.0", "cc_max": "12.0", "gcc_max": 16},
    ]  # 14.0: the driver floor of a new major is nowhere to be read; that it is missing is said


def test_a_compiler_before_13_tells_of_gcc_alone(tmp_path: Path) -> None:
    header = wheel(
        "nvidia-cuda-nvcc-cu12",
        "12.9.86",
        members={"nvidia/cuda_nvcc/include/crt/host_config.h": "#if __GNUC__ > 14\n"},
    )
    assert remake_cuda.read(shelf(tmp_path, header), [_toolkit("12.9")]) == [
        {**_toolkit("12.9"), "gcc_max": 14}
    ]


def test_names_that_are_no_targets_do_not_count() -> None:
    assert remake_cuda.capabilities_in(PROGRAM) == ["7.5", "12.0"]
    assert remake_cuda.capabilities_in(b"") == []
    assert remake_cuda.gcc_in("#if __GNUC__\n") is None
