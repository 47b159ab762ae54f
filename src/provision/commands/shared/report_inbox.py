"""Reports that people put into the folder of their target by hand: filed when they fit, else set
aside, with the reason beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.load import LoadedSpec
from provision.effects import MakeFolder, MoveFile, ProgressCallback, RemoveTree, System, WriteFile
from provision.errors import ExternalError, LockError, ProvisionError, Refused
from provision.kinds.models import ColabTarget
from provision.sanitize import escape_control
from provision.state import State
from provision.state_store import LocalStore
from provision.targets.colab.driver import NOTEBOOK_PART
from provision.verification.report import MAX_REPORT_BYTES

if TYPE_CHECKING:
    from provision.commands.colab_report_import import ImportedReport

_REPORT = "report.json"
_OWN_FILES = ("expectations.json", "report-only.json", "status.json")
"""What lies in the folder of a target beside its report, and is none."""
REJECTED_FOLDER = "refused"


@dataclass(frozen=True, slots=True)
class InboxResult:
    """What was found in the folders: the reports that were filed, and for each refused file where
    it lies now and why.
    """

    imported: tuple[ImportedReport, ...] = ()
    rejected: tuple[tuple[Path, ProvisionError], ...] = ()


def process_inbox(
    loaded: LoadedSpec, system: System, progress: ProgressCallback, *, lock_wait_s: float = 0
) -> InboxResult:
    """File what was dropped for the Colab targets of a spec; where nothing was, nothing is locked
    or loaded.

    A file that is refused is moved to the folder `refused` beside it, with a .txt that says why:
    so it is named once, and not lost.
    """
    store = LocalStore(loaded.folder, system)
    if not any(_find_new_reports(loaded, store.load_ledger().state, system)):
        return InboxResult()
    filed: list[ImportedReport] = []
    refused: list[tuple[Path, ProvisionError]] = []
    with store.exclusive(lock_wait_s, progress):
        for target, path in tuple(_find_new_reports(loaded, store.load_ledger().state, system)):
            try:
                filed.append(_import_report(target, path, loaded, store, system, progress))
            except (Refused, LockError) as error:
                refused.append((_reject_report(path, error, system, progress), error))
    return InboxResult(tuple(filed), tuple(refused))


def _find_new_reports(
    loaded: LoadedSpec, state: State, system: System
) -> Iterator[tuple[str, Path]]:
    """Yield (target, path) of each file that is not one of ours; report.json is not where its
    content is another than we filed.
    """
    for target, context in loaded.spec.targets.items():
        if (
            not isinstance(context, ColabTarget)
            or state.resource(f"{loaded.stem}/{target}", NOTEBOOK_PART) is None
        ):
            continue
        folder = loaded.folder / "reports" / f"{loaded.stem}.{target}"
        recorded = (state.resource(f"{loaded.stem}/{target}", "verification") or {}).get("sha256")
        for name in system.list_folder(folder):
            foreign = (
                name.lower().endswith(".json")
                and not name.startswith(".")
                and name not in _OWN_FILES
            )
            # What a run through Colab's command line has fetched waits for that run to be gone on
            # with.
            ours = name == _REPORT and (
                context.via != "browser" or _sha256(folder / name, system) == recorded
            )
            if foreign and not ours:
                yield target, folder / name


def _sha256(path: Path, system: System) -> str:
    try:
        return hashlib.sha256(system.read(path, MAX_REPORT_BYTES)).hexdigest()
    except ExternalError:
        return ""


def _import_report(
    target: str,
    path: Path,
    loaded: LoadedSpec,
    store: LocalStore,
    system: System,
    progress: ProgressCallback,
) -> ImportedReport:
    from provision.commands.colab_report_import import (
        import_report_for_target,
    )  # here: as a rule nothing was dropped
    from provision.verification.untrusted_report import read_untrusted_report

    name = path.relative_to(loaded.folder.parent).as_posix()
    try:
        content = system.read(path, MAX_REPORT_BYTES)
    except ExternalError as error:
        raise Refused(error.what, why=error.why, hint=error.hint) from error
    received = import_report_for_target(
        read_untrusted_report(content, name),
        name,
        loaded,
        target,
        store.load_ledger().state,
        store,
        system,
        progress,
    )
    if path.name != _REPORT:
        system.perform(RemoveTree(path), progress)
    return received


def _reject_report(
    path: Path, error: ProvisionError, system: System, progress: ProgressCallback
) -> Path:
    folder = path.parent / REJECTED_FOLDER
    taken = system.list_folder(folder)
    name = next(
        name
        for number in range(1, 10_000)
        if (name := path.name if number == 1 else f"{path.stem}-{number}{path.suffix}") not in taken
    )
    system.perform(MakeFolder(folder, 0o700), progress)
    system.perform(MoveFile(path, folder / name), progress)
    system.perform(
        WriteFile(
            folder / f"{name}.txt",
            escape_control("\n".join(filter(None, (error.what, error.why, error.hint)))) + "\n",
            0o600,
        ),
        progress,
    )
    return folder / name
