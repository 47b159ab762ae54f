"""The records of a lock, and the digests over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provision.effects.conda import CondaRecord


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """A distribution file by name and sha256 (hexadecimal)."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One locked package of an index, under its canonical name.

    `environments` are the keys of the environments that have it, `requires` the names of the
    packages it needs there.
    """

    name: str
    version: str
    index: str
    environments: tuple[str, ...]
    requires: tuple[str, ...]
    files: tuple[LockedFile, ...]
    unconfirmed: bool = False
    """Whether the hash is that of a file on the locking machine, confirmed by no other source."""

    @property
    def built(self) -> bool:
        """Whether it is locked as source and built when it is installed."""
        return any(not file.name.endswith(".whl") for file in self.files)


@dataclass(frozen=True, slots=True)
class LockedCondaPackage:
    """One locked file of a conda channel and the environments that have it."""

    record: CondaRecord
    environments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockedEnvironment:
    """A platform with a torch flavour and the digest of its content.

    `glibc` and `driver` are the oldest versions that its wheels run on, None without a bound.
    """

    key: str
    platform: str
    flavour: str | None
    glibc: str | None
    driver: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The environments (keys) of one target, and the reason for their torch flavour.

    On top of a Colab runtime, its packages are `kept` or `changed` (with the runtime's version);
    others are `added`. After a change of those in `restart` the kernel must be started again.
    """

    environments: tuple[str, ...]
    reason: str
    runtime: str | None = None
    kept: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lock:
    """Every choice made for one spec; `inputs` are the fields of the spec that decided."""

    inputs: Mapping[str, Any]
    python: str
    environments: tuple[LockedEnvironment, ...]
    targets: Mapping[str, TargetChoice]
    indexes: Mapping[str, str]
    packages: tuple[LockedPackage, ...]
    digest: str = field(default="")
    text_digest: str = ""
    """The digest of the spec's text about packages (see `text_digest`), "" if it has none."""
    conda: tuple[LockedCondaPackage, ...] = ()
    """Packages of conda targets: Python, `conda_packages`, `source: conda`, and their needs."""

    def environment(self, target: str, platform: str) -> LockedEnvironment | None:
        """Return the environment of a target on a platform, None if the lock does not cover it."""
        keys = self.targets[target].environments if target in self.targets else ()
        for environment in self.environments:
            if environment.key in keys and environment.platform == platform:
                return environment
        return None

    def packages_in(self, environment: LockedEnvironment) -> tuple[LockedPackage, ...]:
        """Return the packages of an environment, by name."""
        key = environment.key
        return tuple(package for package in self.packages if key in package.environments)

    def conda_records_in(self, environment: LockedEnvironment) -> tuple[CondaRecord, ...]:
        """Return the conda packages of an environment, by name."""
        key = environment.key
        return tuple(package.record for package in self.conda if key in package.environments)

    def versions(self, environment: LockedEnvironment) -> dict[str, str]:
        """Return the versions of the packages of an environment by canonical name."""
        return {package.name: package.version for package in self.packages_in(environment)}

    def built(self, environment: LockedEnvironment) -> frozenset[str]:
        """Return the names of the packages that an environment builds from source."""
        return frozenset(package.name for package in self.packages_in(environment) if package.built)


def digest_of(value: Any) -> str:
    """Return "sha256:" and the digest of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def environment_digest(
    python: str,
    platform: str,
    flavour: str | None,
    packages: tuple[LockedPackage, ...],
    conda: tuple[CondaRecord, ...] = (),
) -> str:
    """Return the digest of all that decides an installed environment."""
    content: dict[str, Any] = {
        "python": python,
        "platform": platform,
        "flavour": flavour,
        "packages": [
            [
                package.name,
                package.version,
                package.index,
                [[file.name, file.sha256] for file in package.files],
            ]
            for package in sorted(packages, key=lambda package: (package.name, package.version))
        ],
    }
    if conda:
        content["conda"] = [
            [record.name, record.channel, record.subdir, record.file, record.sha256]
            for record in sorted(conda, key=lambda record: record.name)
        ]
    return digest_of(content)
