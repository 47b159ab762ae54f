"""The part of a lock that one target uses, with what tells its platforms apart where their packages
differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from provision.effects.conda import CondaRecord
from provision.lock.model import Lock, LockedEnvironment, LockedFile, LockedPackage
from provision.lock.wheels import marker_of, marker_of_any, wheel_runs_on

DEFAULT_INDEX_URL = ""
"""The default index: a lock calls it "pypi" and names no address for it, so that it is the default
of whoever installs.
"""


@dataclass(frozen=True, slots=True)
class ViewedPackage:
    """A package with its files for the portion's platforms, and the PEP 508 marker of those that
    hold it; "" for all of them.
    """

    package: LockedPackage
    marker: str


@dataclass(frozen=True, slots=True)
class TargetView:
    """What one target uses: its environments, what they hold, and the canonical address of every
    index that something comes from, "pypi" (address "") first.

    `conda` is what conda brings there, from channels by name.
    """

    digest: str
    python: str
    environments: tuple[LockedEnvironment, ...]
    packages: tuple[ViewedPackage, ...]
    indexes: Mapping[str, str]
    conda: tuple[CondaRecord, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """The PEP 508 marker of each environment."""
        return tuple(marker_of(environment.platform) for environment in self.environments)

    def packages_named(self, name: str) -> tuple[ViewedPackage, ...]:
        """Return what is held of one package: several where its build differs between platforms."""
        return tuple(held for held in self.packages if held.package.name == name)

    def marker_of(self, *packages: LockedPackage) -> str:
        """Return the PEP 508 marker of the environments that hold one of these packages; "" when
        all of them do.
        """
        return _marker(
            self.environments, {key for package in packages for key in package.environments}
        )


def view_target(lock: Lock, target: str) -> TargetView:
    """Return what a target uses of a lock, in the lock's order."""
    environments = target_environments(lock, target)
    held = []
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
            held.append(
                ViewedPackage(
                    replace(package, files=files), _marker(environments, set(package.environments))
                )
            )
    used = {one.package.index for one in held}
    known = {"pypi": DEFAULT_INDEX_URL, **lock.indexes}
    indexes = {name: known[name] for name in known if name in used}
    keys = {environment.key for environment in environments}
    conda = tuple(package.record for package in lock.conda if keys & set(package.environments))
    return TargetView(lock.digest, lock.python, environments, tuple(held), indexes, conda)


def target_environments(lock: Lock, target: str) -> tuple[LockedEnvironment, ...]:
    """Return the environments that a target may use, in the lock's order."""
    return tuple(
        environment
        for environment in lock.environments
        if lock.environment(target, environment.platform) == environment
    )


def is_wheel(file: LockedFile) -> bool:
    """Tell a wheel from a source distribution."""
    return file.name.endswith(".whl")


def _marker(environments: tuple[LockedEnvironment, ...], keys: set[str]) -> str:
    platforms = tuple(
        environment.platform for environment in environments if environment.key in keys
    )
    return "" if len(platforms) == len(environments) else marker_of_any(platforms)
