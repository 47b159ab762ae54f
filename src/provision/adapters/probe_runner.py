"""Runs the probe in an environment."""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from provision.adapters.files import remove_tree, wrap_os_errors
from provision.errors import ExternalError

if TYPE_CHECKING:
    from provision.effects.local import RunProbe
    from provision.effects.system import ProgressCallback

_VERDICTS = (0, 1, 3)
_RECREATE_HINT = "make the environment anew: `provision destroy`, then `provision apply`"


def run_probe(effect: RunProbe, environment: Mapping[str, str], progress: ProgressCallback) -> None:
    """Run the probe and report its progress. May block for minutes.

    Raises:
        ExternalError: it cannot be started, was killed, or ended without a verdict.
    """
    from provision.adapters import process

    only = [option for check in effect.selected_checks for option in ("--only", check)]
    argv = [
        str(effect.python),
        str(_unpack_zipapp(effect.zipapp)),
        "verify",
        "--expectations",
        str(effect.expectations),
        "--out",
        str(effect.report),
        "--events",
        *only,
    ]
    # Bytecode is wanted: without it every import of the stack costs seconds, at each verification
    # and each run of the user's own program.
    caller = {
        key: value
        for key, value in environment.items()
        if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONHOME")
    }
    try:
        result = process.stream(
            argv, {**caller, **dict(effect.environment)}, progress, timeout_s=effect.timeout_s + 60
        )
    except OSError as error:
        why = f"{effect.python}: {os.strerror(error.errno or 0)}"
        raise ExternalError(
            "the environment's Python cannot be started", why=why, hint=_RECREATE_HINT
        ) from None
    if result.code < 0:
        raise _killed_error(-result.code)
    if result.code not in _VERDICTS:
        why = f"exit code {result.code}\n{result.stdout[-2000:]}".strip()
        raise ExternalError(
            "the verification itself could not run",
            why=why,
            hint="run `provision verify` again; if it stays, report this",
        )
    if not effect.report.exists():
        why = (
            f"the environment's Python ended with exit code {result.code}, and the probe wrote "
            f"no report\n{result.stdout[-2000:]}".strip()
        )
        hint = f"look for variables that break Python (PYTHONPATH, LD_PRELOAD), or {_RECREATE_HINT}"
        raise ExternalError("the verification itself could not run", why=why, hint=hint)


def _unpack_zipapp(parcel: Path) -> Path:
    """Return a folder with the files of the probe's zip, where Python can cache bytecode."""
    digest = hashlib.sha256(parcel.read_bytes()).hexdigest()
    folder = parcel.with_name(f"{parcel.stem}-{digest[:12]}")
    if folder.is_symlink() or not folder.is_dir():
        for old in parcel.parent.glob(f"{parcel.stem}-*"):
            remove_tree(old)
        with (
            wrap_os_errors("write", folder),
            tempfile.TemporaryDirectory(
                prefix=f"{parcel.stem}-", dir=parcel.parent, ignore_cleanup_errors=True
            ) as made,
        ):
            with zipfile.ZipFile(parcel) as archive:
                archive.extractall(Path(made, "files"))
            Path(made, "files").rename(folder)
    return folder


def _killed_error(number: int) -> ExternalError:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGKILL:
        why = (
            f"{name} ended the probe from outside: the system does that when memory runs out, "
            "or a person did"
        )
        hint = (
            "free memory (dmesg names what the kernel killed, where that may be read), then "
            "run `provision verify` again"
        )
        return ExternalError("the verification was killed", why=why, hint=hint)
    return ExternalError(
        "the verification was killed",
        why=f"{name} ended the probe",
        hint=f"run `provision verify` again; if it stays, {_RECREATE_HINT}",
    )
