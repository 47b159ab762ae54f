"""The part of a lock that one target uses, with what tells its platforms apart where their packages differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from provision.effects import CondaRecord
from provision.lock.model import Environment, File, Lock, Package
from provision.lock.wheels import any_of, marker_of, runs_on

PYPI = ""
"""The default index: a lock calls it "pypi" and names no address for it, so that it is the default of whoever installs."""


@dataclass(frozen=True, slots=True)
class Held:
    """A package with its files for the portion's platforms, and the PEP 508 marker of those that hold it; "" for all of them."""

    package: Package
    marker: str


@dataclass(frozen=True, slots=True)
class Portion:
    """What one target uses: its environments, what they hold, and the canonical address of every index that something comes from, "pypi" (address "") first.

    `conda` is what conda brings there, from channels by name.
    """

    digest: str
    python: str
    environments: tuple[Environment, ...]
    held: tuple[Held, ...]
    indexes: Mapping[str, str]
    conda: tuple[CondaRecord, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """The PEP 508 marker of each environment."""
        return tuple(marker_of(environment.platform) for environment in self.environments)

    def held_of(self, name: str) -> tuple[Held, ...]:
        """Return what is held of one package: several where its build differs between platforms."""
        return tuple(held for held in self.held if held.package.name == name)

    def marker_of(self, *packages: Package) -> str:
        """Return the PEP 508 marker of the environments that hold one of these packages; "" when all of them do."""
        return _marker(self.environments, {key for package in packages for key in package.environments})


def portion(lock: Lock, target: str) -> Portion:
    """Return what a target uses of a lock, in the lock's order."""
    environments = environments_of(lock, target)
    held = []
    for package in lock.packages:
        platforms = tuple(environment.platform for environment in environments if environment.key in package.environments)
        if platforms:
            files = tuple(file for file in package.files if not is_wheel(file) or any(runs_on(file.name, lock.python, platform) for platform in platforms))
            held.append(Held(replace(package, files=files), _marker(environments, set(package.environments))))
    used = {one.package.index for one in held}
    known = {"pypi": PYPI, **lock.indexes}
    indexes = {name: known[name] for name in known if name in used}
    keys = {environment.key for environment in environments}
    conda = tuple(package.record for package in lock.conda if keys & set(package.environments))
    return Portion(lock.digest, lock.python, environments, tuple(held), indexes, conda)


def environments_of(lock: Lock, target: str) -> tuple[Environment, ...]:
    """Return the environments that a target may use, in the lock's order."""
    return tuple(environment for environment in lock.environments if lock.environment(target, environment.platform) == environment)


def is_wheel(file: File) -> bool:
    """Tell a wheel from a source distribution."""
    return file.name.endswith(".whl")


def _marker(environments: tuple[Environment, ...], keys: set[str]) -> str:
    platforms = tuple(environment.platform for environment in environments if environment.key in keys)
    return "" if len(platforms) == len(environments) else any_of(platforms)
