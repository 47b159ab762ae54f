"""Differences that follow from others, by requirements of packages and by known relations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from provision.lock import Lock

DERIVED_FROM: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("package.nvidia-*", ("package.torch",)),
    ("package.cuda-*", ("package.torch",)),
    ("package.*triton", ("package.torch",)),
    ("torch.version", ("package.torch",)),
    ("torch.cuda", ("package.torch",)),
    ("torch.git", ("package.torch",)),
    ("torch.mkl", ("package.torch",)),
    ("torch.arch_list", ("package.torch",)),
    ("packages.shadowed", ("env.PYTHONPATH",)),
    ("packages.*", ("package.*", "python.version")),
    # Of two locks, no package is told by name.
    ("packages.count", ("packages.digest",)),
    ("packages.files", ("packages.digest",)),
    ("python.minor", ("python.version",)),
    ("driver.major", ("driver.version",)),
    ("driver.cuda", ("driver.version",)),
    ("host.glibc", ("os.version", "os.id")),
    ("host.cpu_flags", ("host.cpu_model",)),
    ("torch.cpu_capability", ("env.ATEN_CPU_CAPABILITY", "host.cpu_model", "host.cpu_flags")),
    ("gpu.vram_bytes", ("gpu.name",)),
    ("gpu.compute_capability", ("gpu.name",)),
    ("gpu.formats", ("gpu.name",)),
    ("nvml.count_all", ("nvml.count",)),
    ("nvml.names", ("gpu.name", "nvml.count")),
    ("nvml.pci", ("gpu.name", "nvml.count")),
    ("nvml.total_bytes", ("gpu.name", "nvml.count")),
    ("nvml.power_default_mw", ("gpu.name", "nvml.count")),
    # A limit that was lowered by hand differs while the card's own does not.
    ("nvml.power_limit_mw", ("nvml.power_default_mw",)),
    ("gpu.available", ("gpu.count", "package.torch", "driver.version")),
    ("numerics.device", ("gpu.count", "package.torch")),
)
"""What follows from what, as patterns: a difference is told under the first of its parents that
differs too.
"""
WEIGHTS_DEPEND_ON = (
    "package.torch",
    "package.transformers",
    "package.accelerate",
    "torch.cpu_capability",
    "gpu.name",
    "gpu.count",
    "numerics.device",
    "train.dtype",
    "train.options",
)
"""Hashes of weights are compared where these are equal; else another hash follows from them.
(Weights were seen equal over several releases of torch and
transformers on one instruction set, and to differ between AVX2 and AVX512.)
"""
_PACKAGE = "package."


class LockedPackages(NamedTuple):
    """A lock's packages: versions by environment digest, and the packages that require each."""

    versions: Mapping[str, Mapping[str, str]]
    requirers: Mapping[str, frozenset[str]]


NO_LOCKED_PACKAGES = LockedPackages({}, {})


class Derivations(NamedTuple):
    """The packages that require each package, and those that the spec declares.

    Declared packages follow from no requirement.
    """

    requirers: Mapping[str, Collection[str]]
    declared: frozenset[str]

    def root_of(self, key: str, hashed: Collection[str], found: Collection[str]) -> str:
        """Return the difference that `key` follows from in the end, or `key` itself.

        Of packages that require each other it is the first by name. `hashed` are keys of class
        exact.
        """
        passed = [key]
        while (parent := next(self._parents(passed[-1], hashed, found), None)) is not None:
            if parent in passed:
                return min(passed[passed.index(parent) :])
            passed.append(parent)
        return passed[-1]

    def _parents(self, key: str, hashed: Collection[str], found: Collection[str]) -> Iterator[str]:
        name = key.removeprefix(_PACKAGE)
        if name != key and name not in self.declared:
            yield from (_PACKAGE + one for one in self._above(name) if _PACKAGE + one in found)
        patterns = [
            parent
            for child, parents in DERIVED_FROM
            if fnmatchcase(key, child)
            for parent in parents
        ]
        if key in hashed:
            patterns += WEIGHTS_DEPEND_ON
        yield from (
            other
            for pattern in patterns
            for other in found
            if other != key and fnmatchcase(other, pattern)
        )

    def _above(self, name: str) -> list[str]:
        """Return the packages that require a package, torch and declared ones first."""
        return sorted(
            self.requirers.get(name, ()),
            key=lambda one: (one != "torch", one not in self.declared, one),
        )


def read_locked_packages(lock: Lock) -> LockedPackages:
    """Return a lock's packages."""
    above: dict[str, set[str]] = {}
    for package in lock.packages:
        for required in package.requires:
            above.setdefault(required, set()).add(package.name)
    held = {environment.digest: lock.versions(environment) for environment in lock.environments}
    return LockedPackages(held, {name: frozenset(names) for name, names in above.items()})


def reported_requirers(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the packages that require each differing package, if the report holds them."""
    return {
        str(row.get("name")): [str(one) for one in row["required_by"]]
        for row in rows
        if isinstance(row.get("required_by"), list)
    }
