"""The part of a lock that one target uses, with what tells its platforms apart where their packages differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from provision.lock.model import Environment, File, Lock, Package

PYPI = "https://pypi.org/simple"
"""The default index: a lock calls it "pypi" and names no address for it."""
_MARKERS = {
    "linux-x86_64": "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "linux-aarch64": "sys_platform == 'linux' and platform_machine == 'aarch64'",
    "macos-arm64": "sys_platform == 'darwin' and platform_machine == 'arm64'",
    "windows-x86_64": "sys_platform == 'win32' and platform_machine == 'AMD64'",
}
_TAGS = {
    "linux-x86_64": (("manylinux", "linux_"), ("x86_64",)),
    "linux-aarch64": (("manylinux", "linux_"), ("aarch64",)),
    "macos-arm64": (("macosx",), ("arm64", "universal2")),
    "windows-x86_64": (("win",), ("amd64",)),
}


@dataclass(frozen=True, slots=True)
class Held:
    """A package with its files for the portion's platforms, and the PEP 508 marker of those that hold it; "" for all of them."""

    package: Package
    marker: str


@dataclass(frozen=True, slots=True)
class Portion:
    """What one target uses: its environments, what they hold, and the canonical address of every index that something comes from, "pypi" first."""

    digest: str
    python: str
    environments: tuple[Environment, ...]
    held: tuple[Held, ...]
    indexes: Mapping[str, str]

    @property
    def markers(self) -> tuple[str, ...]:
        """The PEP 508 marker of each environment."""
        return tuple(_MARKERS[environment.platform] for environment in self.environments)

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
            files = tuple(file for file in package.files if any(built_for(file, platform) for platform in platforms))
            held.append(Held(replace(package, files=files), _marker(environments, set(package.environments))))
    used = {one.package.index for one in held}
    known = {"pypi": PYPI, **lock.indexes}
    return Portion(lock.digest, lock.python, environments, tuple(held), {name: known[name] for name in known if name in used})


def environments_of(lock: Lock, target: str) -> tuple[Environment, ...]:
    """Return the environments that a target may use, in the lock's order."""
    return tuple(environment for environment in lock.environments if lock.environment(target, environment.platform) == environment)


def is_wheel(file: File) -> bool:
    """Tell a wheel from a source distribution."""
    return file.name.endswith(".whl")


def built_for(file: File, platform: str) -> bool:
    """Tell whether a file is for a platform, by its name: a source distribution and a pure wheel are for each of them."""
    if not is_wheel(file):
        return True
    try:
        _, _, _, tags = parse_wheel_filename(file.name)
    except InvalidWheelFilename:
        return False
    starts, ends = _TAGS[platform]
    return any(tag.platform == "any" or (tag.platform.startswith(starts) and tag.platform.endswith(ends)) for tag in tags)


def _marker(environments: tuple[Environment, ...], keys: set[str]) -> str:
    markers = [_MARKERS[environment.platform] for environment in environments if environment.key in keys]
    return "" if len(markers) == len(environments) else " or ".join(markers)
