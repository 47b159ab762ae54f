"""The environment that an image contains: its python3 with the packages, which are not changed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.installed_packages import (
    AuditResult,
    InstalledPackage,
    audit_packages,
    build_install_result,
    find_installed_packages,
    find_locked_packages,
)
from ..workbench.document import WorkbenchDocument
from ..workbench.environment import Environment
from ..workbench.instance import PhaseFailed, WorkbenchInstance
from .document import JobDocument

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class BakedEnvironment(Environment):
    """The interpreter that runs this program: the image's python3."""

    @property
    def prefix(self) -> Path:
        """The interpreter's prefix."""
        return Path(sys.prefix)

    @property
    def python(self) -> str:
        """The interpreter."""
        return sys.executable

    @property
    def package_folders(self) -> tuple[str, ...]:
        """The folders that it imports packages from."""
        return tuple(entry for entry in sys.path if os.path.isdir(entry))

    @property
    def activation(self) -> dict[str, str]:
        """The variables with which `python3` is the interpreter."""
        path = self.instance.environ.get("PATH", "/usr/bin:/bin")
        own = {"PATH": f"{os.path.dirname(sys.executable)}:{path}"}
        return own | ({"VIRTUAL_ENV": sys.prefix} if sys.prefix != sys.base_prefix else {})

    def require_packages(self) -> None:
        """Compare Python, versions, and files by their RECORDs, as check P07 does.

        Raises:
            PhaseFailed: they are not those of the lock.
        """
        problems = list(self._find_differences())
        if problems:
            more = len(problems) - _MOST_NAMED
            listed = [*problems[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
            raise PhaseFailed(
                f"the image does not contain the locked environment: {'; '.join(listed)}"
            )

    def note_packages(self) -> str:
        """Write a note for the probe about the packages that match, and return its path.

        They were there before; a note that is part of the image does not count.
        """
        installed, kept, audits = self._audit_packages()
        fitting = {name: kept[name] for name, audit in audits.items() if not audit.flaws}
        result = build_install_result("shared", "size", installed, fitting, audits, [])
        path = self.instance.work / "installed.json"
        path.write_text(json.dumps(result), encoding="utf-8")
        return str(path)

    def _find_differences(self) -> Iterator[str]:
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        if minor != self.document.python:
            yield f"its python3 is {minor}, locked {self.document.python}"
        installed, kept, audits = self._audit_packages()
        for name, version in sorted(self._locked.items()):
            if name not in kept:
                found = installed[name].version if name in installed else "is not installed"
                yield f"{name} {found}, locked {version}"
        for name, audit in sorted(audits.items()):
            # Without a RECORD, as in packages of a system, nothing can be compared.
            if audit.altered_files or audit.record_is_garbled:
                yield f"{name}: {audit.flaws[0]}"

    @property
    def _locked(self) -> dict[str, str]:
        return {row["name"]: row["version"] for row in self.document.install["packages"]}

    def _audit_packages(
        self,
    ) -> tuple[dict[str, InstalledPackage], dict[str, InstalledPackage], Mapping[str, AuditResult]]:
        """Return all packages, those in their locked versions, and the audits of these."""
        installed = find_installed_packages(self.package_folders)
        kept = find_locked_packages(self._locked, installed)
        return installed, kept, audit_packages(kept, hashed=False, among=installed.values())


def open_environment(
    document: JobDocument, setup: WorkbenchDocument, instance: WorkbenchInstance
) -> Environment:
    """Return the environment of a job on this machine."""
    return (BakedEnvironment if document.is_baked else Environment)(setup, instance)
