"""Requests to conda channels, their results, and the effect that creates a prefix."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

CONDA_SUBDIRS = {
    "linux-x86_64": "linux-64",
    "linux-aarch64": "linux-aarch64",
    "macos-arm64": "osx-arm64",
    "macos-x86_64": "osx-64",
    "windows-x86_64": "win-64",
}
"""Conda's name of each platform."""


class CondaChannel(NamedTuple):
    """A channel by its name in the spec; the address "" is the public channel."""

    name: str
    url: str = ""


class CondaMatchSpec(NamedTuple):
    """A requirement on a conda package.

    Version and build are in conda's notation ("" for any), `channel` is the only channel that it
    may come from.
    """

    name: str
    version: str = ""
    build: str = ""
    channel: str = ""

    def __str__(self) -> str:
        """Return name, version and build, separated by spaces."""
        return " ".join(part for part in (self.name, self.version, self.build) if part)


class CondaRecord(NamedTuple):
    """A locked file of a channel, with its hashes (hexadecimal) and dependencies (match specs)."""

    name: str
    version: str
    build: str
    number: int
    noarch: str
    channel: str
    subdir: str
    file: str
    sha256: str
    md5: str
    depends: tuple[str, ...]
    constrains: tuple[str, ...]

    @property
    def stem(self) -> str:
        """The file name without its extension: name, version and build."""
        return f"{self.name}-{self.version}-{self.build}"


class CondaSolveRequest(NamedTuple):
    """Requirements for one platform, constraints, and the target's virtual packages.

    `virtual_packages` are (name, version), `keep` are records to prefer while they fit.
    """

    platform: str
    channels: tuple[CondaChannel, ...]
    match_specs: tuple[CondaMatchSpec, ...]
    virtual_packages: tuple[tuple[str, str], ...]
    constraints: tuple[CondaMatchSpec, ...] = ()
    exclude_newer: str | None = None
    keep: tuple[CondaRecord, ...] = ()


class CondaProgram(NamedTuple):
    """The program that creates conda environments, and the reason for its choice.

    The path None means py-rattler in our own process.
    """

    name: str
    path: Path | None
    reason: str


class CreateCondaPrefix(NamedTuple):
    """Create a conda environment of exactly these records, each checked against its hash."""

    path: Path
    platform: str
    channels: tuple[CondaChannel, ...]
    records: tuple[CondaRecord, ...]
    match_specs: tuple[str, ...]
    """The requirements by name (match specs), for conda's own history."""
    program: CondaProgram
