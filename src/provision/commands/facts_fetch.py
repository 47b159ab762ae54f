"""Fetch the facts that a project pins."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from provision.commands.shared.configuration import FactsPin
from provision.commands.shared.configuration_file import find_configuration
from provision.effects.local import DownloadFile, MakeFolder, RemoveTree, WriteFile
from provision.effects.packages import IndexSource
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError, UsageError
from provision.facts.fact_archive import MAX_BYTES, read_archive
from provision.facts.tables_in_use import COMPILED_NAME


class FetchedFacts(NamedTuple):
    """The facts of a project; `is_new` is whether they were fetched now."""

    pin: FactsPin
    is_new: bool


def fetch(folder: Path, system: System, progress: ProgressCallback) -> FetchedFacts:
    """Fetch the facts that the configuration of a folder pins, unless this machine has them.

    Raises:
        UsageError: no facts are pinned, or the configuration is not valid.
        LockError: the archive has another hash.
        NetworkError: the index cannot be reached.
        ProvisionError: the archive cannot be read or used.
    """
    pin = find_configuration(folder / "provision.yaml", system).facts
    if pin is None:
        raise UsageError(
            "this project pins no facts",
            hint="add a [facts] table to provision.toml with `sha256`, and either `file` or "
            "both `index` and `name`",
        )
    target = system.facts_folder(pin.sha256)
    if system.exists(target / COMPILED_NAME):
        return FetchedFacts(pin, is_new=False)
    data = _read_archive(pin, target, system, progress)
    found = hashlib.sha256(data).hexdigest()
    if found != pin.sha256:
        raise LockError(
            f"{pin.label} is not the archive that {pin.position} pins",
            why=f"its sha256 is {found}, expected {pin.sha256}",
            hint="restore the archive, or pin the new hash if you trust its origin",
        )
    tables = read_archive(data, pin.label)
    for path, text in tables.items():  # compiled.json is the last: it says that all are there
        system.perform(MakeFolder((target / path).parent), progress)
        system.perform(WriteFile(target / path, text), progress)
    return FetchedFacts(pin, is_new=True)


def _read_archive(pin: FactsPin, target: Path, system: System, progress: ProgressCallback) -> bytes:
    if pin.file is not None:
        try:
            return system.read(pin.file, MAX_BYTES)
        except ExternalError as error:
            raise ExternalError(
                f"{pin.position}: the facts cannot be read",
                why=f"{error.what}: {error.why}",
                hint=error.hint,
            ) from None
    index = IndexSource("facts", pin.index)
    key = canonicalize_name(pin.name)
    files = system.list_index_files([(key, index)])[key, index.name]
    file = next((file for file in files or () if file.sha256 == pin.sha256), None)
    if file is None:
        what = "does not know the package" if files is None else "lists no file with this hash"
        raise UsageError(
            f"{pin.position}: there is no {pin.name} with the pinned hash",
            why=f"{pin.index} {what}",
            hint="check `name`, `index` and `sha256`",
        )
    system.perform(MakeFolder(target), progress)
    archive = target / "archive"
    try:
        system.perform(DownloadFile(archive, file, index), progress)
        return system.read(archive, MAX_BYTES)
    finally:
        system.perform(RemoveTree(archive), progress)
