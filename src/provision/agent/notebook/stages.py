"""The stages of a cell in order; each can be repeated, and a failure leaves a usable runtime."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence

from .errors import StageError
from .host_detection import detect_host
from .loaded_modules import find_stale_packages, inspect_loaded_modules, process_start_ns
from .machine_check import find_catalogue_drift, find_mismatches
from .machine_info import inspect_machine
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
    cards = (
        f"{len(machine.cards)} x {machine.cards[0].name}, driver {machine.driver}"
        if machine.cards
        else "no GPU"
    )
    session.printer.print_stage_line(
        "detect", f"{session.host.value}: Python {machine.python}, {machine.os}, {cards}"
    )
    brought = read_versions_before(session.folder) or {
        name: dist.version for name, dist in session.list_packages().items()
    }
    session.catalogue_drift = find_catalogue_drift(
        session.document, machine, brought.get("torch") if session.document.shared else None
    )


def check_stage(session: Session) -> None:
    """Check the machine before anything is installed."""
    if session.machine is None:
        return
    for one in session.catalogue_drift:
        session.printer.print_stage_line(
            "check",
            f"moved: {one.summary} (as of {session.document.runtime.as_of})"
            if session.document.runtime
            else one.summary,
        )
    found = find_mismatches(session.document, session.machine)
    for difference in found:
        session.printer.print_stage_line("check", difference.what)
    ending = [
        one for one in found if one.blocks and (one.always_blocks or not session.continue_anyway)
    ]
    if ending:
        hint = ending[0].hint
        if not ending[0].always_blocks:
            hint += "\nor set CONTINUE_ANYWAY in the cell, which installs in spite of it"
        raise StageError(ending[0].what, "\n".join(one.what for one in ending[1:]), hint)
    if any(one.blocks for one in found):
        session.printer.print_stage_line("check", "going on anyway, as chosen")
    elif not found:
        session.printer.print_stage_line("check", "this machine is the one that was asked for")


def system_stage(session: Session) -> None:
    """Install the system packages that are missing."""
    wanted = session.document.system_packages
    names = find_missing_system_packages(wanted, session.environ_without_secrets)
    if names:
        session.printer.print_stage_line("system", f"installing {', '.join(names)}")
        install_system(names, session.environ_without_secrets, session.print_heartbeat)
    elif wanted:
        session.printer.print_stage_line("system", f"{len(wanted)} packages are there")


def restart_stage(session: Session) -> None:
    """Stop for a restart if this kernel has loaded something that changed since."""
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
        session.printer.print_stage_line("restart", "not needed")
        return
    names = ", ".join(session.stale_packages)
    how = (
        "the runtime restarts now"
        if session.restart
        else "restart it: Runtime > Restart session (Jupyter: Kernel > Restart)"
    )
    if session.host.is_colab and not session.restart:
        session.notebook.show_restart_button(session.stale_packages, session.document.nonce)
    hint = f"{how}; then run the cells again: nothing is installed twice"
    raise StageError(
        f"this kernel has loaded other versions of {names} than those that are installed now",
        "",
        hint,
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
    """Go through stages. Raises StageError, after it has written down what became of the run."""
    seconds: dict[str, float] = {}
    name = stages[0][0]
    try:
        delete_report(session.base)
        for name, stage in stages:
            session.outcome, session.message = (
                "stopped",
                f"the run had not ended its stage {name} when this was written",
            )
            write_status(session, name, seconds)
            began = time.monotonic()
            try:
                stage(session)
            finally:
                seconds[name] = round(time.monotonic() - began, 3)
        write_status(session, name, seconds)
    except StageError as stopped:
        raise _end(session, name, seconds, stopped) from None
    except KeyboardInterrupt:
        hint = "run the cell again: what is done is not done twice"
        raise _end(
            session,
            name,
            seconds,
            StageError(
                f"interrupted in the stage {name}",
                "the programs that it had started were ended",
                hint,
            ),
        ) from None
    except OSError as error:
        hint = (
            "free some disk space, or make the folder writable; PROVISION_CELL_BASE names "
            "another one"
        )
        raise _end(
            session,
            name,
            seconds,
            StageError(f"the stage {name} cannot use a file", _told(error), hint, "error"),
        ) from None
    except Exception as error:  # noqa: BLE001
        raise _end(session, name, seconds, _fault(session, name, error)) from None


def _end(session: Session, name: str, seconds: dict[str, float], stopped: StageError) -> StageError:
    clean = session.printer.clean
    stopped = StageError(
        clean(stopped.what), clean(stopped.why), clean(stopped.hint), stopped.outcome
    )
    session.outcome, session.message, session.hint = stopped.outcome, stopped.what, stopped.hint
    try:
        write_status(session, name, seconds)
    except OSError as error:
        session.printer.print_detail(f"the status cannot be written: {_told(error)}")
    if stopped.outcome == "restart-needed" and session.restart and session.notebook.in_kernel:
        session.notebook.restart()
    return stopped


def _told(error: OSError) -> str:
    return (
        f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    )


def _fault(session: Session, name: str, error: Exception) -> StageError:
    text = session.printer.clean(
        "".join(traceback.format_exception(type(error), error, error.__traceback__))
    )
    log = session.folder / "fault.log"
    try:
        log.write_text(text, encoding="utf-8")
        hint = f"this is a fault of provision: please report it with {log}"
    except OSError:
        hint = "this is a fault of provision: please report it with\n" + text
    return StageError(
        f"a fault in the stage {name}: {type(error).__name__}: {error}", "", hint, "error"
    )
