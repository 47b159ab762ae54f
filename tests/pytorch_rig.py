"""PyTorch's indexes as small wheels with the real names, versions and requirements: flavour logic
is tested without gigabytes, and to the byte.

The same wheels, with the same sha256, come out on every machine, so that locks made with them
can be kept. Their content is tests/pytorch_rig.yaml.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.rig import make_index, make_wheel

FLAVOURS = ("cpu", "cu126", "cu128", "cu130")
PYTHONS = ("3.11", "3.12", "3.13")
_LINUX, _ARM, _WINDOWS = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64"
_PLATFORMS = {
    "cpu": (_LINUX, _ARM),
    "cu126": (_LINUX,),
    "cu128": (_LINUX, _WINDOWS),
    "cu130": (_LINUX, _WINDOWS),
}
_NVIDIA = ("manylinux_2_27_x86_64", "manylinux_2_27_aarch64", _WINDOWS)
_PINNED = re.compile(r"(nvidia-[a-z0-9-]+|triton)==([0-9.]+)")


@dataclass(frozen=True)
class PyTorch:
    """The indexes on disk: one folder a flavour, and `default`, which holds all that the others
    leave to the default index.
    """

    folder: Path

    def variables(self, address: str = "") -> dict[str, str]:
        """The caller's variables that put the indexes in the place of PyTorch's; `address` is where
        `folder` is served, "" for file://.
        """
        root = address or self.folder.as_uri()
        return {
            f"PROVISION_INDEX_PYTORCH_{flavour.upper()}": f"{root}/{flavour}"
            for flavour in FLAVOURS
        }

    def offline(self, address: str = "") -> dict[str, str]:
        """The same with the default index: nothing is asked of the network."""
        return {
            **self.variables(address),
            "PROVISION_INDEX_PYPI": f"{address or self.folder.as_uri()}/default",
        }


def lay_out(folder: Path) -> PyTorch:
    """Write all wheels and their indexes below a folder."""
    for flavour in FLAVOURS:
        make_index(folder / flavour, tuple(_of_flavour(folder / "wheels" / flavour, flavour)))
    wheels = folder / "wheels/default"
    make_index(folder / "default", (*_defaults(wheels), *_nvidia(wheels), *_others(wheels)))
    return PyTorch(folder)


@functools.cache
def content() -> dict[str, Any]:
    """What tests/pytorch_rig.yaml says."""
    found: dict[str, Any] = yaml.load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
    )
    return found


def _of_flavour(folder: Path, flavour: str) -> Iterator[Path]:
    """The wheels of one of PyTorch's indexes; as there, the CPU one holds macOS wheels too, without
    a flavour in their version.
    """
    for release, row in content()["torch"].items():
        if flavour not in row["flavours"]:
            continue
        yield from _torch(
            folder, release, f"+{flavour}", row["flavours"][flavour], _PLATFORMS[flavour]
        )
        if flavour == "cpu":
            yield from _torch(folder, release, "", (), (row["macos"],))
    for name, version, release, flavours in _companions():
        if flavour in flavours:
            yield from _companion(
                folder, name, f"{version}+{flavour}", release, _PLATFORMS[flavour]
            )


def _defaults(folder: Path) -> Iterator[Path]:
    """Torch and its companions as the default index has them: Linux wheels of the default flavour
    that do not say so in their version.
    """
    for release, row in content()["torch"].items():
        yield from _torch(
            folder,
            release,
            "",
            row["flavours"][row["default"]],
            (_LINUX, _ARM, _WINDOWS, row["macos"]),
        )
    for name, version, release, _ in _companions():
        yield from _companion(
            folder, name, version, release, (_LINUX, _ARM, _WINDOWS, "abi-macosx_11_0_arm64")
        )


def _torch(
    folder: Path, release: str, local: str, cuda: tuple[str, ...], platforms: tuple[str, ...]
) -> Iterator[Path]:
    row = content()["torch"][release]
    requires = (
        *row["requires"],
        *(f"{line}; {row['marker']}" for line in cuda),
        *content()["extras"],
    )
    headers = (
        "Requires-Python: >=3.10",
        *(f"Provides-Extra: {extra}" for extra in ("optree", "opt-einsum", "pyyaml")),
    )
    for tag in _tags(platforms):
        yield make_wheel(
            folder, "torch", release + local, requires=requires, headers=headers, tag=tag
        )


def _companions() -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Name, version, the torch release it pins ("" for none), the flavours it was built in."""
    for name, row in content()["companions"].items():
        for version, release in row["versions"].items():
            yield (
                name,
                version,
                release,
                tuple(content()["torch"][release or row["built_with"][version]]["flavours"]),
            )


def _companion(
    folder: Path, name: str, version: str, release: str, platforms: tuple[str, ...]
) -> Iterator[Path]:
    requires = (
        *content()["companions"][name]["requires"],
        *([f"torch=={release}"] if release else []),
    )
    for tag in _tags(platforms):
        yield make_wheel(
            folder, name, version, requires=requires, headers=("Requires-Python: >=3.10",), tag=tag
        )


def _tags(platforms: tuple[str, ...]) -> Iterator[str]:
    for python in PYTHONS:
        here = "cp" + python.replace(".", "")
        for platform in platforms:
            abi, _, system = platform.rpartition("-")
            yield f"{here}-{'none' if abi == 'none' else here}-{system}"


def _nvidia(folder: Path) -> Iterator[Path]:
    """What the CUDA builds pin: one wheel a platform, which asks for its neighbours as the real
    ones do, without a version.
    """
    toolkits = content()["toolkits"]
    lines = [
        *(
            line
            for row in content()["torch"].values()
            for lines in row["flavours"].values()
            for line in lines
        ),
        *_every(toolkits),
    ]
    for name, version in sorted(
        {found.groups() for line in lines if (found := _PINNED.match(line))}
    ):
        of_cuda_12 = "-cu12" if name.endswith("-cu12") else ""
        needs = tuple(
            need + of_cuda_12 for need in content()["needs"].get(re.sub(r"-cu\d+$", "", name), ())
        )
        for tag in (
            _tags(_NVIDIA[:2])
            if name == "triton"
            else (f"py3-none-{platform}" for platform in _NVIDIA)
        ):
            yield make_wheel(folder, name, version, requires=needs, tag=tag)
    for version, parts in toolkits.items():
        on = "(sys_platform == 'linux' or sys_platform == 'win32')"
        requires = tuple(
            f"{pin}.*; {'sys_platform == ' + repr('linux') if extra == 'cufile' else on} "
            f"and extra == '{extra}'"
            for extra, pin in parts.items()
        )
        yield make_wheel(
            folder,
            "cuda-toolkit",
            version,
            requires=requires,
            headers=tuple(f"Provides-Extra: {extra}" for extra in parts),
        )


def _every(toolkits: dict[str, dict[str, str]]) -> Iterator[str]:
    for parts in toolkits.values():
        yield from parts.values()


def _others(folder: Path) -> Iterator[Path]:
    for name, versions in content()["pure"].items():
        for version, requires in versions.items():
            extras = tuple(
                f"Provides-Extra: {extra}"
                for extra in sorted(set(re.findall(r'extra == "(\w+)"', " ".join(requires))))
            )
            yield make_wheel(folder, name, version, requires=tuple(requires), headers=extras)
    for name, versions in content()["compiled"].items():
        for version, requires in versions.items():
            for tag in _tags((_LINUX, _ARM, _WINDOWS)):
                yield make_wheel(folder, name, version, requires=tuple(requires), tag=tag)
