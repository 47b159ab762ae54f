"""One run of the cell: its inputs and its results so far."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import read_json_object, write_json_object
from ..core.installed_packages import InstalledPackage, find_installed_packages
from ..core.own_wheels import WHEELS
from ..core.record_audit import InstallNote
from .document import NotebookDocument
from .kernel import Host, Notebook
from .loaded_modules import KernelProcess
from .machine_check import FactsDrift
from .machine_info import NotebookMachine
from .output import Printer
from .package_diff import PackageDiff

SCHEMA = "provision.agent.notebook-state/1"
STATE_FILE = "state.json"


@dataclass
class RunState:
    """State of earlier runs.

    `in_use`: packages that were loaded when they changed. `alive`: digest of the packages with
    which a new kernel starts. `proven`: digest of everything that the stored report depends on.
    """

    kernel: KernelProcess
    in_use: list[str] = field(default_factory=list)
    alive: str = ""
    proven: str = ""
    verdict: str = ""
    report_sha256: str = ""

    def save(self, folder: Path) -> None:
        """Write the state atomically."""
        write_json_object(folder / STATE_FILE, {"schema": SCHEMA, **asdict(self)})


def read_run_state(folder: Path, kernel: KernelProcess) -> RunState:
    """Return the stored state: empty if damaged, without `in_use` for another kernel."""
    document = read_json_object(folder / STATE_FILE)
    if document.get("schema") != SCHEMA:
        return RunState(kernel)
    keys = ("alive", "proven", "verdict", "report_sha256")
    texts = {key: str(document.get(key) or "") for key in keys}
    in_use = document.get("in_use") if document.get("kernel") == asdict(kernel) else []
    return RunState(kernel, list(in_use) if isinstance(in_use, list) else [], **texts)


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
    system_root: Path = Path("/")
    host: Host = Host.PYTHON
    machine: NotebookMachine | None = None
    facts_drift: list[FactsDrift] = field(default_factory=list)
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
    def code_parent(self) -> Path:
        """The folder of the code, with a folder for each digest."""
        return self.base / "code"

    @property
    def code_folder(self) -> Path | None:
        """The folder of the code's files; None without code."""
        return self.document.find_code(self.code_parent)

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
    def install_request(self) -> dict[str, Any]:
        """The installer's request for the interpreter of the environment."""
        wheels = {} if self.wheels is None else {"wheels": str(self.wheels)}
        return {**self.document.install, **wheels, "python": self.python}

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

        A virtual environment has neither the image's modules nor its matplotlib backend.
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
        """Return the packages that are installed now."""
        if not self.document.shared:
            return find_installed_packages(find_environment_package_folders(self.environment))
        import site

        user = site.getusersitepackages() if site.ENABLE_USER_SITE is not None else ""
        return find_installed_packages(
            find_package_folders(self.sys_path, os.environ.get("PYTHONPATH", ""), user)
        )

    @property
    def wheels(self) -> Path | None:
        """The archive with the wheels of the project's own packages; None without it."""
        archive = self.folder / WHEELS
        return archive if archive.exists() else None

    def list_packages_with_wrong_record(self) -> frozenset[str]:
        """Return the packages whose RECORD the installer found wrong."""
        result = self.install_result
        return frozenset(
            name
            for name in self.document.packages
            if not InstallNote.from_install_result(result, name).record_fits
        )

    def print_line(self, text: str) -> None:
        """Print the first line of the current stage."""
        self.printer.print_stage_line(self.stage, text)

    def print_detail(self, text: str) -> None:
        """Print a further line of the current stage."""
        self.printer.print_stage_line("", text)

    def print_heartbeat(self, seconds: float) -> None:
        """Print that a program is still running."""
        self.print_detail(f"still running after {seconds:.0f} s")


def find_package_folders(path: Sequence[str], environ_path: str, user_site: str) -> tuple[str, ...]:
    """Return the folders of an interpreter's own packages.

    Args:
        path: its sys.path; "" is the working folder.
        environ_path: PYTHONPATH, whose folders are left out.
        user_site: the user's site-packages, which are left out.
    """
    left_out = {os.path.realpath(folder) for folder in environ_path.split(os.pathsep) if folder}
    left_out |= {"", os.path.realpath(user_site)}
    folders = [os.path.realpath(entry) for entry in path if entry and os.path.isdir(entry)]
    return tuple(dict.fromkeys(folder for folder in folders if folder not in left_out))


def find_environment_package_folders(prefix: Path) -> tuple[str, ...]:
    """Return the folders of a virtual environment's packages."""
    return tuple(str(folder) for folder in sorted(prefix.glob("lib/python*/site-packages")))
