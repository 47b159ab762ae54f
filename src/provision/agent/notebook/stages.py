"""The stages of a cell in order; each can be repeated, and a failure leaves a usable runtime."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence

from .errors import StageError
from .kernel import detect_host
from .loaded_modules import find_stale_packages, inspect_loaded_modules, process_start_ns
from .machine_check import find_facts_drift, find_mismatches
from .machine_info import inspect_machine
from .memory_kills import note_memory_kills
from .output import format_package_count
from .package_backup import read_versions_before
from .package_stages import audit_stage, canary_stage, compare_stage, install_stage
from .probe_run import verify_stage
from .process_environment import environment_stage
from .report_files import delete_report, report_stage, write_status
from .session import Session
from .system_packages import find_missing_system_packages
from .system_packages import install_system_packages as install_system

Stage = Callable[[Session], None]


def detect_stage(session: Session) -> None:
    """Print host and machine."""
    session.host = detect_host(
        session.environ, session.modules, os.path.exists, session.notebook.in_kernel
    )
    session.machine = machine = inspect_machine(session.base, session.environ)
    cards = "no GPU"
    if machine.cards:
        cards = f"{len(machine.cards)} x {machine.cards[0].name}, driver {machine.driver}"
    session.print_line(f"{session.host.value}: Python {machine.python}, {machine.os}, {cards}")
    for line in note_memory_kills(session.base, session.run_state.kernel, session.system_root):
        session.print_detail(line)
    torch = None
    if session.document.shared:
        original = read_versions_before(session.folder) or {
            name: package.version for name, package in session.list_packages().items()
        }
        torch = original.get("torch")
    session.facts_drift = find_facts_drift(session.document, machine, torch)


def check_stage(session: Session) -> None:
    """Check the machine before anything is installed."""
    if session.machine is None:
        return
    runtime = session.document.runtime
    for drift in session.facts_drift:
        as_of = f" (as of {runtime.as_of})" if runtime else ""
        session.print_line(f"note: {drift.summary}{as_of}")
    mismatches = find_mismatches(session.document, session.machine)
    for mismatch in mismatches:
        session.print_line(mismatch.what)
    blocking = [mismatch for mismatch in mismatches if mismatch.blocks]
    if session.continue_anyway:
        blocking = [mismatch for mismatch in blocking if mismatch.always_blocks]
    if blocking:
        first, *others = blocking
        hint = first.hint
        if not first.always_blocks:
            hint += "\nor set CONTINUE_ANYWAY in the cell to install anyway"
        raise StageError(first.what, "\n".join(mismatch.what for mismatch in others), hint)
    if any(mismatch.blocks for mismatch in mismatches):
        session.print_line("continuing anyway, because CONTINUE_ANYWAY is set")
    elif not mismatches:
        note = "; it is not the runtime that the facts describe" if session.facts_drift else ""
        session.print_line(f"this machine meets the spec{note}")


def system_stage(session: Session) -> None:
    """Install the system packages that are missing."""
    declared = session.document.system_packages
    missing = find_missing_system_packages(declared, session.environ_without_secrets)
    if missing:
        session.print_line(f"installing {', '.join(missing)}")
        install_system(missing, session.environ_without_secrets, session.print_heartbeat)
    elif declared:
        session.print_line(f"{format_package_count(len(declared))} already installed")


def restart_stage(session: Session) -> None:
    """Stop for a restart if this kernel has loaded packages that have changed since."""
    installed = session.list_packages()
    locked = [installed[name] for name in session.document.packages if name in installed]
    if session.document.shared and session.notebook.in_kernel:
        session.stale_packages = find_stale_packages(
            locked,
            inspect_loaded_modules(session.modules),
            session.run_state.in_use,
            process_start_ns(session.run_state.kernel),
        )
    if not session.stale_packages:
        session.print_line("not needed")
        return
    how = "the runtime restarts now"
    if not session.restart:
        how = "restart it: Runtime > Restart session (Jupyter: Kernel > Restart)"
        if session.host.is_colab:
            session.notebook.show_restart_button(session.stale_packages, session.document.nonce)
    names = ", ".join(session.stale_packages)
    raise StageError(
        f"this kernel has loaded versions of {names} that differ from the installed ones",
        "",
        f"{how}; then run the cells again; nothing is installed twice",
        "restart-needed",
    )


STAGES: tuple[tuple[str, Stage], ...] = (
    ("detect", detect_stage),
    ("check", check_stage),
    ("compare", compare_stage),
    ("system", system_stage),
    ("install", install_stage),
    ("audit", audit_stage),
    ("canary", canary_stage),
    ("restart", restart_stage),
    ("environment", environment_stage),
    ("verify", verify_stage),
    ("report", report_stage),
)
VERIFY_STAGES = ("detect", "audit", "restart", "environment", "verify", "report")
"""The stages of a verification alone."""


def run_stages(session: Session, stages: Sequence[tuple[str, Stage]]) -> None:
    """Run stages. Raises StageError, after it has written the outcome of the run."""
    seconds: dict[str, float] = {}
    session.stage = stages[0][0]
    try:
        delete_report(session.base)
        for name, stage in stages:
            session.stage = name
            session.outcome = "stopped"
            session.message = f"the stage {name} was running when this was written"
            write_status(session, seconds)
            began = time.monotonic()
            try:
                stage(session)
            finally:
                seconds[name] = round(time.monotonic() - began, 3)
        write_status(session, seconds)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        raise _end(session, seconds, _to_stage_error(session, error)) from None


def _to_stage_error(session: Session, error: BaseException) -> StageError:
    if isinstance(error, StageError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return StageError(
            f"interrupted in stage {session.stage}",
            "the programs that the stage had started were stopped",
            "run the cell again; finished steps are not repeated",
            "interrupted",
        )
    if isinstance(error, OSError):
        return StageError(
            f"failed to read or write a file during stage {session.stage}",
            _describe(error),
            "free some disk space, make the folder writable, or set PROVISION_CELL_BASE to a "
            "different folder",
            "error",
        )
    traceback_text = session.printer.clean("".join(traceback.format_exception(error)))
    log = session.folder / "fault.log"
    try:
        log.write_text(traceback_text, encoding="utf-8")
        hint = f"this is a bug in provision: please report it with {log}"
    except OSError:
        hint = f"this is a bug in provision: please report it with\n{traceback_text}"
    what = f"internal error in stage {session.stage}: {type(error).__name__}: {error}"
    return StageError(what, "", hint, "error")


def _end(session: Session, seconds: dict[str, float], stopped: StageError) -> StageError:
    """Write the outcome, restart the kernel if chosen, and return the error without secrets."""
    texts = (stopped.what, stopped.why, stopped.hint)
    session.outcome = stopped.outcome
    session.message, why, session.hint = map(session.printer.clean, texts)
    try:
        write_status(session, seconds)
    except OSError as error:
        session.print_detail(f"cannot write the status: {_describe(error)}")
    if stopped.outcome == "restart-needed" and session.restart and session.notebook.in_kernel:
        session.notebook.restart()
    return StageError(session.message, why, session.hint, stopped.outcome)


def _describe(error: OSError) -> str:
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
