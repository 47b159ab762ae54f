"""Resolves proposals of `suggest` with uv, against the index that uv is configured with."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from provision.rules.package_lines import without_local
from provision.spec import Package, Spec
from remake_releases import source_requirements
from remaking.wheels import CACHE, Shelf

PLATFORMS = {
    "linux-x86_64": "x86_64-manylinux_2_35",
    "linux-aarch64": "aarch64-manylinux_2_35",
    "macos-arm64": "aarch64-apple-darwin",
    "macos-x86_64": "x86_64-apple-darwin",
    "windows-x86_64": "x86_64-pc-windows-msvc",
}
"""uv's names of the platforms of a spec."""
_REASON_LINES = 6
"""Last lines of uv's derivation to print: they have its conclusion."""


class Outcome(StrEnum):
    """Whether uv finds a set of versions. UNKNOWN: an index that is needed cannot be reached."""

    RESOLVED = "resolved"
    REFUSED = "not resolved"
    UNKNOWN = "not resolvable here"


class Resolution(NamedTuple):
    """The outcome for a spec on its platforms, and uv's reason if it is not RESOLVED."""

    outcome: Outcome
    reason: str


def resolve(spec: Spec, shelf: Shelf, environment: Mapping[str, str] | None = None) -> Resolution:
    """Resolve the packages of a spec for its Python and each of its platforms.

    Only metadata is read. Builds of torch for a certain CUDA version are on PyTorch's index:
    torch and its companions are resolved by their public version. A line with `build: true` is
    replaced by what its source distribution requires, and what it brings may be built too.
    `environment` is that of uv; None: this process's.
    """
    foreign = [package.name for package in spec.packages if not package.is_from_index]
    foreign += [package.name for package in spec.packages if package.index]
    if foreign:
        return Resolution(Outcome.UNKNOWN, f"not on the index: {', '.join(foreign)}")
    lines: list[str] = []
    may_build = any(package.build for package in spec.packages)
    for package in spec.packages:
        if package.build:
            built = _built_requirements(package, shelf)
            if built is None:
                return Resolution(Outcome.UNKNOWN, f"{package.requirement} cannot be read")
            lines += built
        else:
            lines.append(without_local(package.requirement))
    resolution = Resolution(Outcome.RESOLVED, "")
    for platform in spec.platforms:
        resolution = _compile(
            lines, spec.python, PLATFORMS[platform], may_build=may_build, environment=environment
        )
        if resolution.outcome is not Outcome.RESOLVED:
            return resolution
    return resolution


def _built_requirements(package: Package, shelf: Shelf) -> list[str] | None:
    """Return what the newest admitted source distribution requires; None if that is unknown."""
    admitted = [
        source
        for version, source in shelf.sources(package.name).items()
        if package.specifiers.contains(version)
    ]
    if not admitted:
        return None
    requirements = source_requirements(shelf, CACHE, admitted[-1])
    return None if requirements is None else [str(requirement) for requirement in requirements]


def _compile(
    lines: list[str],
    python: str,
    platform: str,
    *,
    may_build: bool,
    environment: Mapping[str, str] | None,
) -> Resolution:
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.in")
        requirements.write_text("\n".join(lines), encoding="utf-8")
        command = [_uv(), "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
        command += ["--python-version", python, "--python-platform", platform, str(requirements)]
        if not may_build:
            command += ["--only-binary", ":all:"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env=environment
        )
    if done.returncode == 0:
        return Resolution(Outcome.RESOLVED, "")
    reason = "\n".join(done.stderr.strip().splitlines()[-_REASON_LINES:])
    is_refused = "No solution found" in done.stderr
    return Resolution(Outcome.REFUSED if is_refused else Outcome.UNKNOWN, reason)


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv") or "uv"
