"""Installation with pip if there is no uv: the same files by hash, and the same result file."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..core.files import write_json_object
from ..core.installed_packages import (
    InstalledPackage,
    audit_packages,
    build_install_result,
    find_locked_packages,
)
from ..core.own_wheels import write_index
from ..core.process import run_process
from .errors import StageError
from .package_diff import PackageDiff
from .session import INSTALL_RESULT_FILE, Session
from .uv_tool import pip_variables

_INSTALL_S = 3600.0


def install_with_pip(
    session: Session, comparison: PackageDiff, before: Mapping[str, InstalledPackage]
) -> None:
    """Install what is missing, changed or damaged with pip, and write the result.

    Raises StageError. pip changes nothing before it has every file.
    """
    if comparison.to_install:
        _run_pip(session, comparison)
    locked, installed = session.document.packages, session.list_packages()
    after = find_locked_packages(locked, installed)
    if wrong := [name for name in locked if name not in after]:
        raise StageError(
            "pip reported success, but installed packages do not match the lock: "
            f"{', '.join(wrong[:5])}",
            "",
            "remove any other copy that comes first on sys.path",
        )
    notes = ["installed with pip; packages that were already installed were compared by size"]
    audits = audit_packages(after, hashed=False)
    mode = session.document.install["mode"]
    result = build_install_result(mode, "size", before, after, audits, notes)
    write_json_object(session.folder / INSTALL_RESULT_FILE, result)


def _run_pip(session: Session, comparison: PackageDiff) -> None:
    listed = session.document.install["packages"]
    packages = [package for package in listed if package["name"] in comparison.to_install]
    sources = sorted(
        package["name"]
        for package in packages
        if not all(file.endswith(".whl") for file in package["files"])
    )
    if sources:
        raise StageError(
            f"only uv can build locked source distributions: {', '.join(sources)}",
            "uv is not available",
            "install uv (pip install uv) and run the cell again",
        )
    lines = []
    for package in packages:
        hashes = sorted(set(package["files"].values()))
        options = " ".join(f"--hash=sha256:{value}" for value in hashes)
        lines.append(f"{package['name']}=={package['version']} {options}\n")
    requirements = session.folder / "requirements.txt"
    requirements.write_text("".join(lines), encoding="utf-8")
    argv = [session.python, "-I", "-m", "pip", "install", "--quiet", "--no-deps"]
    argv += ["--require-hashes", "--only-binary=:all:", "--no-compile", "--no-warn-script-location"]
    if session.document.shared and _is_externally_managed():
        argv.append("--break-system-packages")
    if comparison.damaged or comparison.outdated:
        # pip never checks an installed version, so such a one is reinstalled.
        argv.append("--force-reinstall")
    environ = session.environ_without_secrets
    links = [*session.document.install.get("links", ())]
    if session.wheels is not None:
        index = Path(tempfile.mkdtemp(dir=session.folder))
        write_index(session.wheels, index)
        links += [folder.as_uri() for folder in index.iterdir()]
    answer = run_process(
        [*argv, "--requirement", str(requirements)],
        _INSTALL_S,
        pip_variables({**session.document.install, "links": links}, environ),
        session.folder,
        session.print_heartbeat,
    )
    if answer.code:
        raise StageError(
            "pip could not install the locked packages; nothing was changed",
            answer.output_tail[-1500:],
            "run the cell again when the index is reachable",
        )


def _is_externally_managed() -> bool:
    """Return whether another installer owns this interpreter; never of a virtual environment.

    Source: packaging.python.org, "Externally Managed Environments".
    """
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return sys.prefix == sys.base_prefix and os.path.isfile(marker)
