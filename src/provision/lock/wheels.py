"""Platforms of a resolver: their markers, and the wheels that run on them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from packaging.markers import Marker
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from provision.lock.model import LockedFile, LockedPackage

_MARKERS = {
    "linux-x86_64": ("linux", "x86_64", "Linux", "posix"),
    "linux-aarch64": ("linux", "aarch64", "Linux", "posix"),
    "macos-arm64": ("darwin", "arm64", "Darwin", "posix"),
    "macos-x86_64": ("darwin", "x86_64", "Darwin", "posix"),
    "windows-x86_64": ("win32", "AMD64", "Windows", "nt"),
}
PLATFORMS = tuple(_MARKERS)
LINUX_PLATFORMS = ("linux-x86_64", "linux-aarch64")
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_|manylinux(1|2010|2014)_")
_OLD_ARCHIVE = re.compile(r"\.(tgz|tar\.(bz2|xz|lzma|zst|Z))$")
_OLD_GLIBC = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}


def marker_of(platform: str) -> str:
    """Return the PEP 508 marker of a platform such as "linux-x86_64"."""
    system, machine, _, _ = _MARKERS[platform]
    return f"sys_platform == '{system}' and platform_machine == '{machine}'"


def marker_of_any(platforms: tuple[str, ...]) -> str:
    """Return the marker of any of the platforms (at least one)."""
    if len(platforms) == 1:
        return marker_of(platforms[0])
    return " or ".join(f"({marker_of(platform)})" for platform in platforms)


@cache
def marker_applies(marker: str, platform: str, python: str) -> bool:
    """Return whether a marker ("": always) is true on a platform with any release of "3.11".

    A lock is for all releases of a CPython. The system is taken to have its newest release.
    """
    if not marker:
        return True
    system, machine, name, kind = _MARKERS[platform]
    environment = {
        "sys_platform": system,
        "platform_machine": machine,
        "platform_system": name,
        "os_name": kind,
        "python_version": python,
        "extra": "",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_release": "99",
        "platform_version": "99",
    }
    parsed = Marker(marker)
    return any(
        parsed.evaluate(
            {**environment, "python_full_version": full, "implementation_version": full}
        )
        for full in _tested_releases(marker, python)
    )


def _tested_releases(marker: str, python: str) -> list[str]:
    """Return the releases next to those that a marker names; 99 stands for all later ones."""
    patches = {99}
    for text in re.findall(rf"{re.escape(python)}\.(\d+)", marker):
        patch = int(text)
        patches |= {max(patch - 1, 0), patch, patch + 1}
    return [f"{python}.{patch}" for patch in sorted(patches)]


@cache
def wheel_runs_on(name: str, python: str, platform: str) -> bool:
    """Return whether a file is a wheel that runs on a platform with a CPython such as "3.11"."""
    system, machine, _, _ = _MARKERS[platform]
    starts = {"linux": ("manylinux", "linux_"), "darwin": ("macosx",), "win32": ("win",)}[system]
    if not name.endswith("-any.whl") and not any(start in name for start in starts):
        return False  # most wheels are for other systems, and to parse a name takes time
    try:
        _, _, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return False
    tags = frozenset(tag for tag in tags if (tag.interpreter, tag.abi) in _rank_abis(python))
    ends = (machine.lower(), "universal2") if system == "darwin" else (machine.lower(),)
    return any(
        tag.platform == "any" or (tag.platform.startswith(starts) and tag.platform.endswith(ends))
        for tag in tags
    )


def parse_file_name(name: str) -> tuple[str, Version] | None:
    """Return the package and version in the name of a wheel or source, None for another name."""
    try:
        if name.endswith(".whl"):
            return parse_wheel_filename(name)[:2]
        return parse_sdist_filename(_OLD_ARCHIVE.sub(".tar.gz", name))
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def file_identity(name: str) -> tuple[object, ...] | None:
    """Return what a file name states, whichever way the package, version and tags are written.

    uv writes normalized names into a lock: `pyyaml-6.0.2-...` for `PyYAML-6.0.2-...`. None for the
    name of another file.
    """
    if name.endswith(".whl"):
        try:
            return parse_wheel_filename(name)
        except InvalidWheelFilename:
            return None
    parsed = parse_file_name(name)
    return None if parsed is None else (*parsed, name.rpartition(".")[2])


@cache
def _rank_abis(python: str) -> dict[tuple[str, str], int]:
    """Return the rank of each (interpreter, ABI) of wheels that run on a CPython such as "3.11".

    The most specific one has rank 0.
    """
    major, _, minor = python.partition(".")
    version, interpreter = (int(major), int(minor)), f"cp{major}{minor}"
    own = cpython_tags(version, [interpreter], ["any"])
    compatible = compatible_tags(version, interpreter, ["any"])
    tags = dict.fromkeys((tag.interpreter, tag.abi) for tag in (*own, *compatible))
    return {pair: rank for rank, pair in enumerate(tags)}


def rank_wheels(package: LockedPackage, python: str, platform: str) -> tuple[LockedFile, ...]:
    """Return the wheels of a package that run on a platform, in the order of an installer.

    The most specific ABI comes first, then the newest glibc. Not every one of them runs on every
    machine of the platform.
    """
    ranks = _rank_abis(python)

    def rank(file: LockedFile) -> tuple[int, bool, tuple[int, int]]:
        tags = parse_wheel_filename(file.name)[3]
        abi = min(ranks.get((tag.interpreter, tag.abi), len(ranks)) for tag in tags)
        major, minor = glibc_of_wheel(file.name) or (0, 0)
        return abi, file.name.endswith("-any.whl"), (-major, -minor)

    usable = (file for file in package.files if wheel_runs_on(file.name, python, platform))
    return tuple(sorted(usable, key=rank))


def glibc_of_wheel(name: str) -> tuple[int, int] | None:
    """Return the oldest glibc that a wheel runs on; None if its name does not state one."""
    stated = [
        _OLD_GLIBC[old] if old else (int(major), int(minor))
        for major, minor, old in _GLIBC.findall(name)
    ]
    return min(stated, default=None)


def with_platform_files(package: LockedPackage, python: str, platform: str) -> LockedPackage:
    """Return the package with the files of one platform only; source is for all.

    Another platform's files do not change the digest of an environment.
    """
    if package.built:
        return package
    files = (file for file in package.files if wheel_runs_on(file.name, python, platform))
    return replace(package, files=tuple(files))


def oldest_glibc(package: LockedPackage, python: str, platform: str) -> tuple[int, int] | None:
    """Return the oldest glibc that one of the package's wheels for the platform runs on."""
    if platform not in LINUX_PLATFORMS:
        return None
    floors = []
    for file in package.files:
        if not wheel_runs_on(file.name, python, platform):
            continue
        stated = glibc_of_wheel(file.name)
        if stated is None:
            return None
        floors.append(stated)
    return min(floors, default=None)
