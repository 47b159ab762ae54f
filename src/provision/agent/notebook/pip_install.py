"""Installation with pip if there is no uv: the same files by hash, and the same result file."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..core.files import write_json_object
from ..core.installed_packages import InstalledPackage, find_flaw
from ..core.process import run_process
from ..core.record_audit import read_record
from ..core.versions import is_same_version
from .document import NotebookDocument
from .errors import StageError
from .package_diff import PackageDiff
from .uv_tool import pip_variables

SCHEMA = "provision.installed/1"
EXTERNALLY_MANAGED_FILE = "EXTERNALLY-MANAGED"
_INSTALL_S = 3600.0


def is_externally_managed(environment: bool) -> bool:
    """Return whether another installer owns this interpreter; never of a virtual environment.

    Source: packaging.python.org, "Externally Managed Environments".
    """
    return not environment and os.path.isfile(
        os.path.join(sysconfig.get_path("stdlib"), EXTERNALLY_MANAGED_FILE)
    )


def install_with_pip(
    document: NotebookDocument,
    comparison: PackageDiff,
    folder: Path,
    python: str,
    managed: bool,
    environ: Mapping[str, str],
    heartbeat: Callable[[float], None],
) -> None:
    """Install what is missing, changed or damaged with pip. Raises StageError.

    pip changes nothing before it has every file.
    """
    pins = [one for one in document.install["packages"] if one["name"] in comparison.to_install]
    built = sorted(
        pin["name"] for pin in pins if any(not name.endswith(".whl") for name in pin["files"])
    )
    if built:
        raise StageError(
            f"{', '.join(built)} is locked as source, which only uv builds here",
            "no uv could be had",
            "install uv (pip install uv) and run the cell again",
        )
    wanted = folder / "requirements.txt"
    lines = [
        f"{pin['name']}=={pin['version']} "
        + " ".join(f"--hash=sha256:{value}" for value in sorted(set(pin["files"].values())))
        for pin in pins
    ]
    wanted.write_text("\n".join(lines) + "\n", encoding="utf-8")
    arguments = [
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "--no-compile",
        "--no-warn-script-location",
    ]
    arguments += ["--break-system-packages"] if managed else []
    # An installed version is never looked at by pip, so a damaged one is installed anew.
    arguments += ["--force-reinstall"] if comparison.damaged else []
    answer = run_process(
        [python, "-I", "-m", "pip", *arguments, "--requirement", str(wanted)],
        _INSTALL_S,
        pip_variables(document.install, environ),
        folder,
        heartbeat,
    )
    if answer.code:
        raise StageError(
            "pip could not install the locked packages; nothing was changed",
            answer.output_tail[-1500:],
            "run the cell again when the index can be reached",
        )


def write_install_result(
    document: NotebookDocument,
    before: Mapping[str, InstalledPackage],
    after: Mapping[str, InstalledPackage],
    path: Path,
) -> dict[str, Any]:
    """Write the provenance of each package. Raises StageError if one is not as locked."""
    wrong = [
        name
        for name, version in document.packages.items()
        if name not in after or not is_same_version(after[name].version, version)
    ]
    if wrong:
        raise StageError(
            f"pip said that all is installed, and {', '.join(wrong[:5])} is not",
            "",
            "look for another copy that comes first on sys.path",
        )
    flaws = {name: flaw for name in document.packages if (flaw := find_flaw(after[name]))}
    packages = {
        name: {
            "version": after[name].version,
            "provenance": _provenance(before.get(name), after[name]),
            "files_checked": len(read_record(after[name].metadata_folder).hashed_rows),
            **({"record_fits": False} if name in flaws else {}),
        }
        for name in sorted(document.packages)
    }
    kinds = ("hash-checked", "preinstalled", "reinstalled")
    counts = {kind: sum(one["provenance"] == kind for one in packages.values()) for kind in kinds}
    notes = ["installed by pip; what was there already was compared by size"]
    result = {
        "schema": SCHEMA,
        "mode": document.install["mode"],
        "audit": "size",
        "counts": counts,
        "packages": packages,
        "notes": notes,
    }
    write_json_object(path, result)
    return result


def _provenance(before: InstalledPackage | None, after: InstalledPackage) -> str:
    if before is None:
        return "hash-checked"
    return "preinstalled" if before == after else "reinstalled"
