"""Exports the probe with its expectations, for a machine that provision cannot reach."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.locked_context import build_probe_expectations, get_locked_context
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import Refused, UsageError
from provision.targets import TargetContext
from provision.verification.device_files import probe_zipapp

EXPORTED_FILES = ("probe.pyz", "expectations.json", "README.txt")
_REPORT = "report.json"
_README_MARKER = "This folder was made by `provision probe export`"
_LIMIT = 2**20


@dataclass(frozen=True, slots=True)
class ProbeExport:
    """An exported probe with the commands to run it and to import its report."""

    folder: Path
    context: TargetContext
    run: str
    import_command: str


def export(
    folder: Path, loaded: LoadedSpec, target: str, system: System, progress: ProgressCallback
) -> ProbeExport:
    """Write probe.pyz, expectations.json and README.txt into a folder.

    Raises:
        LockError: there is no lock that matches.
        Refused: the folder contains anything else.
    """
    check_output_folder(folder, system)
    context = get_locked_context(loaded, target, system)
    exported = ProbeExport(
        folder,
        context,
        f"PYTHON probe.pyz verify --expectations expectations.json --out {_REPORT}",
        _import_command(loaded, target),
    )
    expectations = json.dumps(build_probe_expectations(context), indent=1, sort_keys=True)
    contents: tuple[bytes | str, ...] = (probe_zipapp(), f"{expectations}\n", _readme(exported))
    system.perform(MakeFolder(folder), progress)
    for name, content in zip(EXPORTED_FILES, contents, strict=True):
        system.perform(WriteFile(folder / name, content, 0o644), progress)
    return exported


def check_output_folder(folder: Path, reader: Reader) -> None:
    """Check that a folder may be written into.

    Raises:
        UsageError: it is a file.
        Refused: it contains something that no export wrote.
    """
    if reader.exists(folder) and not folder.is_dir():
        raise UsageError(
            f"{folder} is a file",
            why="`provision probe export` needs a folder to write to",
            hint="choose a folder that does not exist yet",
        )
    names, readme = reader.list_folder(folder), folder / "README.txt"
    foreign = [name for name in names if name not in (*EXPORTED_FILES, _REPORT)]
    is_export = reader.exists(readme) and _README_MARKER.encode() in reader.read(readme, _LIMIT)
    if foreign or (names and not is_export):
        why = f"it contains other files: {', '.join((foreign or list(names))[:5])}"
        raise Refused(
            f"{folder} is not empty",
            why=why,
            hint="choose an empty folder, or one that does not exist yet",
        )


def _import_command(loaded: LoadedSpec, target: str) -> str:
    return (
        f"provision report add {_REPORT} --spec {shlex.quote(str(loaded.path))} --target {target}"
    )


def _readme(exported: ProbeExport) -> str:
    context = exported.context
    declared = f"the spec {context.spec.name}, target `{context.target}`, declares"
    return f"""{_README_MARKER}.

It checks whether an environment is the one that {declared}, and whether training works in it.
Copy the folder to the machine with that environment. In the folder, run this with the \
environment's own Python in place of PYTHON (3.10 or newer; no network is needed):

    {exported.run}

The exit code is 0 for verified, 1 for failed, 2 for no verdict and 3 for unverified. The command \
writes {_REPORT}. The variables and folders that the spec declares under `env`, `secrets` and \
`paths` must exist.
Copy {_REPORT} back without changing it, and import it in the spec's folder:

    {exported.import_command}
    provision diff OTHER.json {_REPORT}        # compare it with another report

Describe this machine without any expectations:   PYTHON probe.pyz env
"""
