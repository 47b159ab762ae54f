"""Differences that follow from others, by requirements of packages and by known relations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import filter as match_names
from fnmatch import fnmatchcase
from typing import NamedTuple

from provision.lock import Lock

DERIVED_FROM: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            *("package.nvidia-*", "package.cuda-*", "package.*triton"),
            *("torch.version", "torch.cuda", "torch.git", "torch.mkl", "torch.arch_list"),
        ),
        ("package.torch",),
    ),
    (("code.file.*", "code.files", "code.commit", "code.dirty", "code.changed"), ("code.digest",)),
    (("packages.shadowed",), ("env.PYTHONPATH",)),
    # A file of a project shadows a module whatever release is installed.
    (("packages.[!s]*", "packages.stray*"), ("package.*", "python.version")),
    # If the locks differ, no package is named.
    (("packages.count", "packages.files"), ("packages.digest",)),
    (("python.minor",), ("python.version",)),
    (("driver.major", "driver.cuda"), ("driver.version",)),
    (("host.glibc",), ("os.version", "os.id")),
    (("host.cpu_flags",), ("host.cpu_model",)),
    (("torch.cpu_capability",), ("env.ATEN_CPU_CAPABILITY", "host.cpu_model", "host.cpu_flags")),
    (("gpu.vram_bytes", "gpu.compute_capability", "gpu.formats"), ("gpu.name",)),
    (("nvml.count_all",), ("nvml.count",)),
    (
        ("nvml.names", "nvml.pci", "nvml.total_bytes", "nvml.power_default_mw"),
        ("gpu.name", "nvml.count"),
    ),
    # A limit that was lowered by hand differs while the card's own does not.
    (("nvml.power_limit_mw",), ("nvml.power_default_mw",)),
    (("gpu.available",), ("gpu.count", "package.torch", "driver.version")),
    (("numerics.device",), ("gpu.count", "package.torch")),
)
"""Patterns of readings and of those that they follow from: a difference is shown under the first of
its parents that differs too.
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
FRAMEWORK_WEIGHTS_DEPEND_ON = (
    "package.jaxlib",
    "package.keras",
    "package.tensorflow*",
    "framework.name",
    "framework.version",
    "framework.platform",
    "framework.dtype",
    "framework.devices",
    "host.cpu_flags",
    "host.cpu_model",
)
"""The same for the weights of jax and Keras. XLA compiles for the processor and the card."""
PACKAGE = "package."
"""Prefix of the readings with the versions of packages."""


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

    def declares(self, key: str) -> bool:
        """Return whether a reading is of a declared package."""
        return key.removeprefix(PACKAGE) in self.declared

    def root_of(self, key: str, hashed: Collection[str], differences: Collection[str]) -> str:
        """Return the difference that `key` follows from in the end, or `key` itself.

        Of packages that require each other it is the first by name. `hashed` are keys of class
        exact.
        """
        passed = [key]
        while (parent := next(self._parents(passed[-1], hashed, differences), None)) is not None:
            if parent in passed:
                return min(passed[passed.index(parent) :])
            passed.append(parent)
        return passed[-1]

    def _parents(
        self, key: str, hashed: Collection[str], differences: Collection[str]
    ) -> Iterator[str]:
        name = key.removeprefix(PACKAGE)
        if name != key and name not in self.declared:
            # torch and declared packages first.
            requirers = sorted(
                self.requirers.get(name, ()),
                key=lambda package: (package != "torch", package not in self.declared, package),
            )
            yield from (PACKAGE + one for one in requirers if PACKAGE + one in differences)
        patterns = [
            pattern
            for children, parents in DERIVED_FROM
            if any(fnmatchcase(key, child) for child in children)
            for pattern in parents
        ]
        if key in hashed:
            is_framework = key.startswith("framework.")
            patterns += FRAMEWORK_WEIGHTS_DEPEND_ON if is_framework else WEIGHTS_DEPEND_ON
        for pattern in patterns:
            yield from (other for other in match_names(differences, pattern) if other != key)


def read_locked_packages(lock: Lock) -> LockedPackages:
    """Return a lock's packages."""
    above: dict[str, set[str]] = {}
    for package in lock.packages:
        for required in package.requires:
            above.setdefault(required, set()).add(package.name)
    versions = {environment.digest: lock.versions(environment) for environment in lock.environments}
    return LockedPackages(versions, {name: frozenset(names) for name, names in above.items()})
