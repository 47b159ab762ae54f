"""The rows of the fact tables, as types: each carries where it comes from, as of when, and how sure we are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a fact comes from, as of which day, and how sure we are: high, medium or low. What is low may warn, never fail."""

    source: str
    as_of: str
    confidence: str


@dataclass(frozen=True, slots=True)
class TorchRelease:
    """One release of torch: the Pythons (major.minor) that have a wheel, and the CUDA flavours it was built in.

    `builds` maps a flavour such as "cu128" to the confidence that it can be installed; `default` is the flavour that the public index serves for Linux x86_64.
    """

    release: str
    released: str
    default: str
    builds: Mapping[str, str]
    python: str
    pythons: tuple[str, ...]
    pythons_aarch64: tuple[str, ...]
    glibc: str
    triton: str
    torchvision: tuple[str, ...]
    evidence: Evidence

    @property
    def flavours(self) -> tuple[str, ...]:
        """All build families, `cpu` first: the PyTorch index serves a CPU build of every release in the table."""
        return ("cpu", *self.builds)

    def pythons_on(self, platform: str) -> tuple[str, ...]:
        """Return the Pythons that have a wheel on a platform such as "linux-aarch64"; macOS and Windows are taken as Linux x86_64."""
        return self.pythons_aarch64 if platform == "linux-aarch64" else self.pythons


@dataclass(frozen=True, slots=True)
class TransformersRun:
    """A run of transformers releases, `first` to `last`, with the same needs.

    `accelerate` is the floor that Trainer enforces, `torch` the release below which torch is switched off at import; None where none is known.
    """

    first: str
    last: str
    python: str
    accelerate: str | None
    torch: str | None
    declared: Mapping[str, str]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Floor:
    """The lowest version that will do: `version` is enough for sure; below `certain` it is too old for sure, between the two nothing was read."""

    version: str
    certain: str | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Card:
    """An accelerator: CUDA compute capability such as "8.9", memory in GB as the vendor counts."""

    name: str
    cc: str
    memory_gb: float
    arch: str
    aliases: tuple[str, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class PythonVersion:
    """A CPython minor version and the month after which it gets no more security fixes."""

    version: str
    end_of_life: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Replaced:
    """A package name that leads elsewhere: `kind` is stub (empty or refuses to install), other (another project), abandoned or hostile."""

    name: str
    instead: str
    kind: str
    what: str
    evidence: Evidence
