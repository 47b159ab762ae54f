"""Compares the files of a local environment with what was installed there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.agent.core.installed_packages import find_installed_packages
from provision.agent.core.record_audit import (
    InstallNote,
    compare_files,
    find_matching_files,
    find_unlisted_files,
    read_record,
)
from provision.effects.local import Damage

_NOTE_LIMIT = 2**24


def find_damage(
    environment: Path, note: Path, minor: str, names: tuple[str, ...], *, hashed: bool, shared: bool
) -> Damage:
    """Return the damage of an environment (see Reader.find_damage).

    `note` is the record that the installer wrote.
    """
    site = environment / f"lib/python{minor}/site-packages"
    document = read_install_record(note)
    records = {
        name: read_record(package.metadata_folder)
        for name, package in find_installed_packages([str(site)]).items()
    }
    notes = {
        name: InstallNote.from_install_result(document, name) for name in names if name in records
    }
    compared = {name: compare_files(records[name], notes[name], hashed=hashed) for name in notes}
    flawed = {path for comparison in compared.values() for path in comparison.flaws}
    was_hashed = any(comparison.hashed for comparison in compared.values())
    undamaged = find_matching_files(flawed, records.values(), hashed=was_hashed)
    undamaged |= _files_rewritten_by_conda(document, environment)
    packages = []
    for name, comparison in sorted(compared.items()):
        # A RECORD that never matched is not damage.
        if notes[name].record_fits or (notes[name].snapshot and not comparison.unchanged):
            flaws = [flaw for path, flaw in comparison.flaws.items() if path not in undamaged]
            if flaws:
                packages.append((name, tuple(flaws)))
    startup_files = () if shared else find_unlisted_files(str(site), records.values())[0]
    compared_by = "size"
    if hashed:
        compared_by = "sha256"
    elif all(note.snapshot for note in notes.values()):
        compared_by = "size and modification time"
    return Damage(tuple(packages), tuple(startup_files), compared_by)


def _files_rewritten_by_conda(note: Mapping[str, Any], environment: Path) -> frozenset[str]:
    """Return the files that conda rewrote while linking them, which never matched a RECORD."""
    packages = note.get("packages")
    paths: list[object] = []
    for package in packages.values() if isinstance(packages, dict) else ():
        remade = package.get("remade") if isinstance(package, dict) else None
        if isinstance(remade, list):
            paths += remade
    texts = [path for path in paths if isinstance(path, str)]
    return frozenset(os.path.normpath(environment / path) for path in texts)


def read_install_record(path: Path) -> Mapping[str, Any]:
    """Return the record that an installer wrote; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            note = json.loads(file.read(_NOTE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}
