"""The part of a lock that one target uses, with the markers of its platforms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from provision.effects.conda import CondaRecord
from provision.effects.packages import NamedIndex
from provision.lock.model import Lock, LockedEnvironment, LockedFile, LockedPackage
from provision.lock.wheels import marker_of, marker_of_any, wheel_runs_on

DEFAULT_INDEX_URL = ""
"""The address of "pypi" in a lock: none, so that the installing machine's default is used."""


@dataclass(frozen=True, slots=True)
class ViewedPackage:
    """A package with its files for the target's platforms, and their marker ("" for all)."""

    package: LockedPackage
    marker: str


@dataclass(frozen=True, slots=True)
class TargetView:
    """The environments and packages of one target, and the used indexes with "pypi" first."""

    digest: str
    python: str
    environments: tuple[LockedEnvironment, ...]
    packages: tuple[ViewedPackage, ...]
    indexes: Mapping[str, str]
    conda: tuple[CondaRecord, ...] = ()

    @property
    def indexed(self) -> tuple[ViewedPackage, ...]:
        """The packages of an index, without those from a path or a repository."""
        return tuple(viewed for viewed in self.packages if viewed.package.origin is None)

    @property
    def markers(self) -> tuple[str, ...]:
        """The PEP 508 marker of each environment."""
        return tuple(marker_of(environment.platform) for environment in self.environments)

    def packages_named(self, name: str) -> tuple[ViewedPackage, ...]:
        """Return the entries of a package, several if its build differs between platforms."""
        return tuple(viewed for viewed in self.packages if viewed.package.name == name)

    def marker_of(self, *packages: LockedPackage) -> str:
        """Return the PEP 508 marker of the environments with one of the packages, "" for all."""
        keys = {key for package in packages for key in package.environments}
        return _marker_of_keys(self.environments, keys)


def view_target(lock: Lock, target: str) -> TargetView:
    """Return the part of a lock that a target uses, in the lock's order."""
    environments = lock.environments_of(target)
    packages = []
    for package in lock.packages:
        platforms = tuple(
            environment.platform
            for environment in environments
            if environment.key in package.environments
        )
        if platforms:
            files = tuple(
                file
                for file in package.files
                if not is_wheel(file)
                or any(wheel_runs_on(file.name, lock.python, platform) for platform in platforms)
            )
            marker = _marker_of_keys(environments, set(package.environments))
            packages.append(ViewedPackage(replace(package, files=files), marker))
    used = {viewed.package.index for viewed in packages}
    known = {"pypi": DEFAULT_INDEX_URL, **lock.indexes}
    indexes = {name: url for name, url in known.items() if name in used}
    keys = {environment.key for environment in environments}
    conda = tuple(package.record for package in lock.conda if keys & set(package.environments))
    return TargetView(lock.digest, lock.python, environments, tuple(packages), indexes, conda)


def to_index(
    name: str,
    url: str,
    packages: Iterable[LockedPackage],
    environments: Iterable[LockedEnvironment],
) -> NamedIndex:
    """Return an index with the locked packages that come from it, and their platforms."""
    own = [package for package in packages if package.index == name]
    keys = {key for package in own for key in package.environments}
    flavour, platforms = None, []
    for environment in environments:
        if environment.key in keys:
            platforms.append(environment.platform)
            if name == f"pytorch-{environment.flavour}":
                flavour = environment.flavour
    pins = tuple(f"{package.name}=={package.version}" for package in own)
    return NamedIndex(name, url, flavour, pins, tuple(dict.fromkeys(platforms)))


def is_wheel(file: LockedFile) -> bool:
    """Return whether a file is a wheel, not a source distribution."""
    return file.name.endswith(".whl")


def _marker_of_keys(environments: tuple[LockedEnvironment, ...], keys: set[str]) -> str:
    platforms = tuple(
        environment.platform for environment in environments if environment.key in keys
    )
    return "" if len(platforms) == len(environments) else marker_of_any(platforms)
