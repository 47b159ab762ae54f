"""Layers of an environment: the group of each difference, and its weight among the others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase

from packaging.utils import canonicalize_name

from provision.agent.core.versions import UnreadableVersion, read_version
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.model import ReadingClass
from provision.agent.probe.observing.variables import HARMFUL_VARIABLES
from provision.agent.probe.readings import class_of_reading
from provision.facts import Facts
from provision.facts.schema_packages import Symptom
from provision.verification.diff.problems import JUDGED_CHECKS
from provision.verification.error_lookup.missing_modules import is_known_package


class Layer(StrEnum):
    """A layer of an environment, from the hardware up."""

    GPU = "GPU and driver"
    TORCH = "CUDA and torch build"
    PYTHON = "Python"
    PACKAGES = "packages"
    SYSTEM = "system libraries"
    CAPACITY = "memory and disk"
    VARIABLES = "variables"
    PATHS = "paths and modules"
    MACHINE = "machine"


_PATTERNS: tuple[tuple[str, Layer], ...] = (
    ("driver.*", Layer.GPU),
    ("gpu.*", Layer.GPU),
    ("nvml.*", Layer.GPU),
    ("dcgm.*", Layer.GPU),
    ("torch.*", Layer.TORCH),
    ("cuda.*", Layer.TORCH),
    ("package.torch", Layer.TORCH),
    ("package.nvidia-*", Layer.TORCH),
    ("python.*", Layer.PYTHON),
    ("loaded.*", Layer.PACKAGES),
    ("package.*", Layer.PACKAGES),
    ("packages.shadowed", Layer.PATHS),
    ("packages.*", Layer.PACKAGES),
    ("os.*", Layer.SYSTEM),
    ("host.glibc", Layer.SYSTEM),
    ("libraries.*", Layer.SYSTEM),
    ("host.*_bytes", Layer.CAPACITY),
    ("host.shm_*", Layer.CAPACITY),
    ("host.nofile", Layer.CAPACITY),
    ("disk.*", Layer.CAPACITY),
    ("env.*", Layer.VARIABLES),
    ("framework.memory_*", Layer.VARIABLES),
    ("hub.*", Layer.VARIABLES),
    ("folder.*", Layer.PATHS),
    ("path.*", Layer.PATHS),
    ("user.*", Layer.PATHS),
    ("locale.*", Layer.PATHS),
)
_SIZES = re.compile(r"\d+")


def layer_of(key: str) -> Layer:
    """Return the layer of a key; the first matching pattern counts."""
    layers = (layer for pattern, layer in _PATTERNS if fnmatchcase(key, pattern))
    return next(layers, Layer.MACHINE)


class Weights:
    """The weight of each key: the number of known errors that a difference of it can cause.

    An error counts for a package if its cause names the package, and for a reading if one
    of the checks that detect the error names it as a cause. Checks that are judged on both sides
    give no weight: if one fails, it is a problem.
    """

    def __init__(self, symptoms: Iterable[Symptom], facts: Facts) -> None:
        self._facts = facts
        self._packages: dict[str, int] = {}
        self._readings: dict[str, int] = {}
        causes = {check.id: check.causes for check in CHECKS}
        for symptom in symptoms:
            words = re.findall(r"[A-Za-z][\w.-]*\w", f"{symptom.cause} {' '.join(symptom.tells)}")
            for name in {str(canonicalize_name(word)) for word in words}:
                self._packages[name] = self._packages.get(name, 0) + 1
            checks = [check for check in symptom.checks if check not in JUDGED_CHECKS]
            for key in {key for check in checks for key in causes.get(check, ())}:
                self._readings[key] = self._readings.get(key, 0) + 1

    def of(self, key: str) -> int:
        """Return the weight of a key; 0 if no known error has to do with it."""
        area, _, name = key.partition(".")
        if area in ("package", "loaded"):
            return self._packages.get(name, 0) + len(self._facts.runs.get(name, ()))
        return self._readings.get(key, 0)

    def is_known_package(self, name: str) -> bool:
        """Return whether an error can have to do with a missing package by the facts."""
        return self.of(f"package.{name}") > 0 or is_known_package(name, self._facts)

    def is_known_variable(self, name: str) -> bool:
        """Return whether a variable has an effect on training by the facts or the checks."""
        facts = self._facts
        return (
            name in HARMFUL_VARIABLES
            or name in facts.variables
            or name in facts.folders
            or any(f"env.{name}" in check.causes for check in CHECKS)
        )


class Relevance(StrEnum):
    """The relevance of a difference by itself, without a problem on one side."""

    NOTABLE = "notable"
    MINOR = "minor"
    IGNORED = "ignored"


def relevance_of(key: str, a: object, b: object, weights: Weights) -> Relevance:
    """Return the relevance of a difference by its class and size.

    Identity readings do; patch releases, and packages of which no known error is, do not.
    """
    area, _, name = key.partition(".")
    if area == "env":
        return Relevance.NOTABLE if weights.is_known_variable(name) else Relevance.MINOR
    if area == "package":
        is_missing = a is None or b is None
        matters = weights.is_known_package(name) if is_missing else weights.of(key) > 0
        return Relevance.NOTABLE if matters and change_size(a, b) > 0 else Relevance.MINOR
    kind = class_of_reading(key)
    if kind is ReadingClass.IDENTITY:
        return Relevance.NOTABLE
    # Free space is noise between two runs on one machine; here the machines may be two.
    return Relevance.IGNORED if kind is ReadingClass.NOISE else Relevance.MINOR


def change_size(a: object, b: object) -> int:
    """Return how far apart two versions are: 0 a patch, 1 a minor, 2 a major release or missing."""
    if not isinstance(a, str) or not isinstance(b, str):
        return 2
    try:
        releases = [read_version(version).public_key for version in (a, b)]
    except UnreadableVersion:
        return 2
    if releases[0] == releases[1]:
        return 2 if a.partition("+")[2] != b.partition("+")[2] else 0
    first, second = (_SIZES.findall(version.partition("+")[0]) for version in (a, b))
    if first[0] != second[0]:
        return 2
    return 1 if first[1:2] != second[1:2] else 0


def class_or_context(key: str) -> ReadingClass:
    """Return the class of a key; keys that only some documents have are context."""
    if key.startswith(("package.", "loaded.")):
        return ReadingClass.IDENTITY
    return class_of_reading(key) or ReadingClass.CONTEXT
