"""One run of the cell: its inputs, its means, and its results so far."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import read_json_object
from ..core.installed_packages import InstalledPackage, find_installed_packages
from ..core.record_audit import InstallNote
from .document import NotebookDocument
from .host_detection import Host
from .kernel import Notebook
from .machine_check import CatalogueDrift
from .machine_info import NotebookMachine
from .output import Printer
from .package_diff import PackageDiff
from .package_folders import find_environment_package_folders, find_package_folders
from .run_state import RunState

INSTALL_RESULT_FILE = "installed.json"


@dataclass
class Session:
    """A run of the cell in its folder; `environ` is the kernel's own, where variables are set."""

    folder: Path
    document: NotebookDocument
    payload_digest: str
    notebook: Notebook
    run_state: RunState
    printer: Printer
    environ: MutableMapping[str, str]
    continue_anyway: bool = False
    restart: bool = False
    again: bool = False
    stage: str = "environment"
    sys_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    modules: Mapping[str, object] = field(default_factory=lambda: sys.modules)
    host: Host = Host.PYTHON
    machine: NotebookMachine | None = None
    catalogue_drift: list[CatalogueDrift] = field(default_factory=list)
    comparison: PackageDiff | None = None
    stale_packages: tuple[str, ...] = ()
    missing_secrets: list[str] = field(default_factory=list)
    is_stored_report: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    installed_now: int = 0
    outcome: str = "stopped"
    message: str = ""
    hint: str = ""

    @property
    def base(self) -> Path:
        """The folder of status and report."""
        return self.folder.parent

    @property
    def environment(self) -> Path:
        """The virtual environment, with isolation venv."""
        return self.folder / "env"

    @property
    def python(self) -> str:
        """The interpreter that the packages are for."""
        return sys.executable if self.document.shared else str(self.environment / "bin/python")

    @property
    def prefix(self) -> str:
        """The folder of that interpreter."""
        return sys.prefix if self.document.shared else str(self.environment)

    @property
    def install_result(self) -> dict[str, Any]:
        """The installer's result; {} before the installation."""
        return read_json_object(self.folder / INSTALL_RESULT_FILE)

    @property
    def provenance_counts(self) -> dict[str, int]:
        """Number of packages by provenance."""
        counts = self.install_result.get("counts")
        if not isinstance(counts, dict):
            return {}
        return {str(kind): count for kind, count in counts.items() if isinstance(count, int)}

    @property
    def environ_without_secrets(self) -> dict[str, str]:
        """The variables for programs that need no secret."""
        return {
            key: value for key, value in self.environ.items() if key not in self.document.secrets
        }

    @property
    def variables(self) -> dict[str, str]:
        """Variables for programs in the environment.

        A virtual environment has neither the image's modules nor its drawing backend.
        """
        variables = dict(self.environ)
        if self.document.shared:
            return variables
        variables.pop("PYTHONPATH", None)
        variables.pop("PYTHONHOME", None)
        if variables.get("MPLBACKEND", "").startswith("module://"):
            del variables["MPLBACKEND"]
        path = variables.get("PATH", os.defpath)
        variables["PATH"] = f"{os.path.dirname(self.python)}{os.pathsep}{path}"
        variables["VIRTUAL_ENV"] = self.prefix
        return variables

    def list_packages(self) -> dict[str, InstalledPackage]:
        """The packages that are there now."""
        if not self.document.shared:
            return find_installed_packages(find_environment_package_folders(self.environment))
        import site

        user = site.getusersitepackages() if site.ENABLE_USER_SITE is not None else ""
        return find_installed_packages(
            find_package_folders(self.sys_path, os.environ.get("PYTHONPATH", ""), user)
        )

    def list_packages_with_wrong_record(self) -> frozenset[str]:
        """Packages whose own RECORD is wrong, as the installer noted."""
        result = self.install_result
        return frozenset(
            name
            for name in self.document.packages
            if not InstallNote.from_install_result(result, name).record_fits
        )

    def print_line(self, text: str) -> None:
        """Print the first line of the present stage."""
        self.printer.print_stage_line(self.stage, text)

    def print_detail(self, text: str) -> None:
        """Print a further line of the present stage."""
        self.printer.print_stage_line("", text)

    def print_heartbeat(self, seconds: float) -> None:
        """Print that a program is still running."""
        self.print_detail(f"still at work after {seconds:.0f} s")
