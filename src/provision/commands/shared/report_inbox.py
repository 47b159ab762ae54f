"""Imports reports from the folder of their target or from a bucket, or sets them aside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.executor import Executor, open_executor
from provision.commands.shared.load import LoadedSpec
from provision.effects.local import MakeFolder, MoveFile, RemoveTree, WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, LockError, ProvisionError, Refused
from provision.sanitize import escape_control
from provision.state import State, to_folder_name
from provision.state_store import LocalStore
from provision.targets import find_driver
from provision.targets.capabilities import AcceptsReports, ReportRequest
from provision.targets.stored_verdict import VerificationRecord
from provision.verification.report import MAX_REPORT_BYTES

if TYPE_CHECKING:
    from provision.commands.shared.report_import import ImportedReport

_REPORT = "report.json"
_OWN_FILES = ("expectations.json", "report-only.json", "status.json")
"""Files in the folder of a target that are not its report."""
_REJECTED_FOLDER = "refused"
_FETCHED = "fetched.json"
"""A report from a bucket, until it is imported."""


@dataclass(frozen=True, slots=True)
class InboxResult:
    """The imported reports, and the new path and the error of each rejected file."""

    imported: tuple[ImportedReport, ...] = ()
    rejected: tuple[tuple[Path, ProvisionError], ...] = ()


def process_inbox(
    loaded: LoadedSpec, system: System, progress: ProgressCallback, *, lock_wait_s: float = 0
) -> InboxResult:
    """Import the reports that people put into the folders of a spec's targets.

    Reports that notebooks copied to a bucket are fetched into these folders first. A file that is
    rejected is moved to the folder `refused` next to it, with the reason in a .txt: so it is
    reported once, and not lost. Without new files nothing is locked or loaded.
    """
    drivers = (find_driver(loaded.spec, target) for target in loaded.spec.targets)
    if not any(isinstance(driver, AcceptsReports) for driver in drivers):
        return InboxResult()
    state = LocalStore(loaded.folder, system).load_ledger().state
    _fetch_reports(loaded, state, system, progress)
    if not any(_find_new_reports(loaded, state, system)):
        return InboxResult()
    imported: list[ImportedReport] = []
    rejected: list[tuple[Path, ProvisionError]] = []
    with open_executor(loaded, system, progress, lock_wait_s=lock_wait_s) as executor:
        for target, path in tuple(_find_new_reports(loaded, executor.state, system)):
            try:
                imported.append(_import_report(target, path, loaded, executor))
            except (Refused, LockError) as error:
                rejected.append((_reject_report(path, error, system, progress), error))
    return InboxResult(tuple(imported), tuple(rejected))


def _fetch_reports(
    loaded: LoadedSpec, state: State, system: System, progress: ProgressCallback
) -> None:
    """Fetch the reports in buckets that are neither stored nor rejected already. May block.

    A bucket that cannot be read is a note: what is stored can still be shown.
    """
    for target, request in _list_requests(loaded, state):
        if not request.bucket_uri:
            continue
        try:
            content = system.cloud().object(request.bucket_uri, MAX_REPORT_BYTES)
        except ExternalError as error:
            why = f": {error.why}" if error.why else ""
            progress(f"cannot fetch the report of {loaded.stem}/{target}: {error.what}{why}")
            continue
        folder = loaded.folder / "reports" / to_folder_name(f"{loaded.stem}/{target}")
        if content is None or _is_processed(content, folder, system):
            continue
        system.perform(MakeFolder(folder, 0o700), progress)
        system.perform(WriteFile(folder / _FETCHED, content, 0o600), progress)


def _is_processed(content: bytes, folder: Path, system: System) -> bool:
    """Return whether a report is the stored one, or was rejected before."""
    from provision.verification.untrusted_report import read_untrusted_report, serialize_report

    digest = hashlib.sha256(content).hexdigest()
    rejected = folder / _REJECTED_FOLDER
    if any(_sha256(rejected / name, system) == digest for name in system.list_folder(rejected)):
        return True
    try:
        normalized = serialize_report(read_untrusted_report(content, _FETCHED))
    except Refused:
        return False
    return _sha256(folder / _REPORT, system) == hashlib.sha256(normalized).hexdigest()


def _list_requests(loaded: LoadedSpec, state: State) -> Iterator[tuple[str, ReportRequest]]:
    """Yield (target, request) of each target that waits for reports."""
    for target in loaded.spec.targets:
        driver = find_driver(loaded.spec, target)
        if driver is None or not isinstance(driver, AcceptsReports):
            continue
        request = driver.report_request(f"{loaded.stem}/{target}", state)
        if request is not None:
            yield target, request


def _find_new_reports(
    loaded: LoadedSpec, state: State, system: System
) -> Iterator[tuple[str, Path]]:
    """Yield (target, path) of each file that people added or replaced."""
    for target, request in _list_requests(loaded, state):
        address = f"{loaded.stem}/{target}"
        folder = loaded.folder / "reports" / to_folder_name(address)
        stored = VerificationRecord.find(state, address)
        for name in system.list_folder(folder):
            if not name.lower().endswith(".json") or name.startswith(".") or name in _OWN_FILES:
                continue
            # A report that an earlier run has fetched waits for that run to be continued.
            if name == _REPORT and not request.is_manual:
                continue
            if name != _REPORT or _sha256(folder / name, system) != (stored and stored.sha256):
                yield target, folder / name


def _sha256(path: Path, system: System) -> str:
    try:
        return hashlib.sha256(system.read(path, MAX_REPORT_BYTES)).hexdigest()
    except ExternalError:
        return ""


def _import_report(
    target: str, path: Path, loaded: LoadedSpec, executor: Executor
) -> ImportedReport:
    # Imported here: as a rule the folders contain nothing new.
    from provision.commands.shared.report_import import import_report_for_target
    from provision.verification.untrusted_report import read_untrusted_report

    name = path.relative_to(loaded.folder.parent).as_posix()
    try:
        content = executor.system.read(path, MAX_REPORT_BYTES)
    except ExternalError as error:
        raise Refused(error.what, why=error.why, hint=error.hint) from error
    report = read_untrusted_report(content, name)
    imported = import_report_for_target(report, name, loaded, target, executor)
    if path.name != _REPORT:
        executor.system.perform(RemoveTree(path), executor.progress)
    return imported


def _reject_report(
    path: Path, error: ProvisionError, system: System, progress: ProgressCallback
) -> Path:
    """Move a report aside, next to a text with the reason; return its new path."""
    folder = path.parent / _REJECTED_FOLDER
    name, number, taken = path.name, 1, system.list_folder(folder)
    while name in taken:
        number += 1
        name = f"{path.stem}-{number}{path.suffix}"
    reason = escape_control("\n".join(filter(None, (error.what, error.why, error.hint))))
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(MoveFile(path, folder / name), progress)
    system.perform(WriteFile(folder / f"{name}.txt", f"{reason}\n", 0o600), progress)
    return folder / name
