"""Compares the files of a local environment with what was installed there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.agent.core.installed_packages import find_installed_packages
from provision.agent.core.record_audit import (
    FileComparison,
    InstallNote,
    compare_files,
    find_matching_files,
    find_unlisted_files,
    read_record,
)
from provision.effects import Damage

_NOTE_LIMIT = 2**24


def find_damage(
    environment: Path, note: Path, minor: str, names: tuple[str, ...], *, hashed: bool, shared: bool
) -> Damage:
    """Return what differs in an environment from what was installed (see Reader.damage); `note` is
    where the installer wrote what it noted.
    """
    site = environment / f"lib/python{minor}/site-packages"
    written = _read_note(note)
    records = {
        name: read_record(found.metadata_folder)
        for name, found in find_installed_packages([str(site)]).items()
    }
    noted = {
        name: InstallNote.from_install_result(written, name) for name in names if name in records
    }
    compared = {name: compare_files(records[name], noted[name], hashed=hashed) for name in noted}
    remade = _files_rewritten_by_conda(written, environment)
    flawed = {path for one in compared.values() for path in one.flaws}
    fine = remade | find_matching_files(
        flawed, records.values(), hashed=any(one.hashed for one in compared.values())
    )
    found = tuple(
        (name, flaws)
        for name in sorted(compared)
        if (flaws := _flaws(compared[name], noted[name], fine))
    )
    by = (
        "sha256"
        if hashed
        else "size and time of change"
        if all(one.snapshot for one in noted.values())
        else "size"
    )
    return Damage(
        found, () if shared else tuple(find_unlisted_files(str(site), records.values())[0]), by
    )


def _flaws(compared: FileComparison, noted: InstallNote, fine: frozenset[str]) -> tuple[str, ...]:
    """Return what differs in one package; a RECORD that did not fit its files at the installation
    is not damage.
    """
    if not noted.record_fits and (compared.unchanged or not noted.snapshot):
        return ()
    return tuple(flaw for path, flaw in compared.flaws.items() if path not in fine)


def _files_rewritten_by_conda(note: Mapping[str, Any], environment: Path) -> frozenset[str]:
    """Return the files that conda wrote anew as it linked them, which never fitted a RECORD."""
    packages = note.get("packages")
    lists = (
        [one.get("remade") for one in packages.values() if isinstance(one, dict)]
        if isinstance(packages, dict)
        else []
    )
    return frozenset(
        os.path.normpath(environment / path)
        for paths in lists
        if isinstance(paths, list)
        for path in paths
        if isinstance(path, str)
    )


def _read_note(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_NOTE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
