"""The locked uv: its version, the hashes of its wheels, and the pip command that installs it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LockedUv:
    """An exact version of uv, and the sha256 (hexadecimal) of every wheel that may be taken."""

    version: str
    hashes: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """A line of a requirements file."""
        return f"uv=={self.version} " + " ".join(f"--hash=sha256:{value}" for value in self.hashes)

    def folder(self, tools: Path) -> Path:
        """Return the folder of this version among the tools."""
        return tools / f"uv-{self.version}"


def pip_arguments(requirements: Path, target: Path) -> list[str]:
    """Return what pip is called with to install a requirements file, by hash, into a folder."""
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--upgrade"]
    return ["install", *options, "--target", str(target), "--requirement", str(requirements)]


def parse_uv_version(output: str) -> str | None:
    """Return the version in the output of `uv --version`."""
    match = re.match(r"uv (\d+(?:\.\d+)*)", output)
    return match[1] if match else None
