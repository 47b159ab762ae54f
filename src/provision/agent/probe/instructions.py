"""Packages whose wheels need processor instructions that old and virtual processors lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from .text_files import read_text

TENSORFLOW = frozenset({"tensorflow", "tensorflow-cpu"})
"""Packages with the module tensorflow."""
AVX = "avx"
_NEED_AVX = TENSORFLOW | {"jaxlib"}
"""Their wheels for Linux x86_64 need AVX (tensorflow.org, Install with pip, hardware requirements:
from 1.6 on; jaxlib/cpu_feature_guard.c). TensorFlow dies of SIGILL, jaxlib raises RuntimeError.
"""


class MissingInstructionsError(RuntimeError):
    """A package was not imported, because this processor would end the process."""


def avx_packages(packages: Mapping[str, str], platform: str) -> list[str]:
    """Return the packages that need AVX on a platform.

    A release with a local version ("2.21.0+selfbuild") is left out: it may be built without AVX.
    """
    if platform != "linux-x86_64":
        return []
    return [name for name in sorted(_NEED_AVX & packages.keys()) if "+" not in packages[name]]


def read_cpuinfo(root: Path) -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo; empty without this file."""
    first = read_text(root / "proc/cpuinfo").split("\n\n")[0]
    return {
        key.strip(): value.strip()
        for key, _, value in (line.partition(":") for line in first.splitlines())
    }


def cpu_flags(root: Path) -> list[str]:
    """Return the flags of the first processor; empty if they cannot be read."""
    fields = read_cpuinfo(root)
    return (fields.get("flags") or fields.get("Features") or "").split()


def require_instructions(packages: Iterable[str], root: Path) -> None:
    """Raise MissingInstructionsError if this processor lacks the instructions of packages."""
    flags, needing = cpu_flags(root), list(packages)
    if needing and flags and AVX not in flags:
        raise MissingInstructionsError(
            f"{', '.join(needing)} not imported: AVX instructions are required, and this processor "
            "does not have them"
        )
