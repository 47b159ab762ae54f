"""The stages of a cell in their order, and how a run goes through them: each is safe to repeat, and
a failure leaves the runtime usable.
"""

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


def detect_stage(course: Session) -> None:
    """Say where this runs and what the machine is."""
    course.host = detect_host(
        course.environ, course.modules, os.path.exists, course.notebook.in_kernel
    )
    course.machine = machine = inspect_machine(course.base, course.environ)
    cards = (
        f"{len(machine.cards)} x {machine.cards[0].name}, driver {machine.driver}"
        if machine.cards
        else "no GPU"
    )
    course.printer.print_stage_line(
        "detect", f"{course.host.value}: Python {machine.python}, {machine.os}, {cards}"
    )
    brought = read_versions_before(course.folder) or {
        name: dist.version for name, dist in course.list_packages().items()
    }
    course.catalogue_drift = find_catalogue_drift(
        course.document, machine, brought.get("torch") if course.document.shared else None
    )


def check_stage(course: Session) -> None:
    """Check the machine before anything is installed."""
    if course.machine is None:
        return
    for one in course.catalogue_drift:
        course.printer.print_stage_line(
            "check",
            f"moved: {one.summary} (as of {course.document.runtime.as_of})"
            if course.document.runtime
            else one.summary,
        )
    found = find_mismatches(course.document, course.machine)
    for difference in found:
        course.printer.print_stage_line("check", difference.what)
    ending = [
        one for one in found if one.blocks and (one.always_blocks or not course.continue_anyway)
    ]
    if ending:
        hint = ending[0].hint
        if not ending[0].always_blocks:
            hint += "\nor set CONTINUE_ANYWAY in the cell, which installs in spite of it"
        raise StageError(ending[0].what, "\n".join(one.what for one in ending[1:]), hint)
    if any(one.blocks for one in found):
        course.printer.print_stage_line("check", "going on anyway, as chosen")
    elif not found:
        course.printer.print_stage_line("check", "this machine is the one that was asked for")


def system_stage(course: Session) -> None:
    """Install the system packages that are missing."""
    wanted = course.document.system_packages
    names = find_missing_system_packages(wanted, course.environ_without_secrets)
    if names:
        course.printer.print_stage_line("system", f"installing {', '.join(names)}")
        install_system(names, course.environ_without_secrets, course.print_heartbeat)
    elif wanted:
        course.printer.print_stage_line("system", f"{len(wanted)} packages are there")


def restart_stage(course: Session) -> None:
    """Stop for a restart where this kernel has loaded something that was changed since, and only
    then.
    """
    there = course.list_packages()
    locked = [there[name] for name in course.document.packages if name in there]
    if course.document.shared and course.notebook.in_kernel:
        course.stale_packages = find_stale_packages(
            locked,
            inspect_loaded_modules(course.modules),
            course.run_state.in_use,
            process_start_ns(course.run_state.kernel),
        )
    if not course.stale_packages:
        course.printer.print_stage_line("restart", "not needed")
        return
    names = ", ".join(course.stale_packages)
    how = (
        "the runtime restarts now"
        if course.restart
        else "restart it: Runtime > Restart session (Jupyter: Kernel > Restart)"
    )
    if course.host.is_colab and not course.restart:
        course.notebook.show_restart_button(course.stale_packages, course.document.nonce)
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


def run_stages(course: Session, stages: Sequence[tuple[str, Stage]]) -> None:
    """Go through stages. Raises Stopped, after it has written down what became of the run."""
    seconds: dict[str, float] = {}
    name = stages[0][0]
    try:
        delete_report(course.base)
        for name, stage in stages:
            course.outcome, course.message = (
                "stopped",
                f"the run had not ended its stage {name} when this was written",
            )
            write_status(course, name, seconds)
            began = time.monotonic()
            try:
                stage(course)
            finally:
                seconds[name] = round(time.monotonic() - began, 3)
        write_status(course, name, seconds)
    except StageError as stopped:
        raise _end(course, name, seconds, stopped) from None
    except KeyboardInterrupt:
        hint = "run the cell again: what is done is not done twice"
        raise _end(
            course,
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
            course,
            name,
            seconds,
            StageError(f"the stage {name} cannot use a file", _told(error), hint, "error"),
        ) from None
    except Exception as error:  # noqa: BLE001
        raise _end(course, name, seconds, _fault(course, name, error)) from None


def _end(course: Session, name: str, seconds: dict[str, float], stopped: StageError) -> StageError:
    clean = course.printer.clean
    stopped = StageError(
        clean(stopped.what), clean(stopped.why), clean(stopped.hint), stopped.outcome
    )
    course.outcome, course.message, course.hint = stopped.outcome, stopped.what, stopped.hint
    try:
        write_status(course, name, seconds)
    except OSError as error:
        course.printer.print_detail(f"the status cannot be written: {_told(error)}")
    if stopped.outcome == "restart-needed" and course.restart and course.notebook.in_kernel:
        course.notebook.restart()
    return stopped


def _told(error: OSError) -> str:
    return (
        f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    )


def _fault(course: Session, name: str, error: Exception) -> StageError:
    text = course.printer.clean(
        "".join(traceback.format_exception(type(error), error, error.__traceback__))
    )
    log = course.folder / "fault.log"
    try:
        log.write_text(text, encoding="utf-8")
        hint = f"this is a fault of provision: please report it with {log}"
    except OSError:
        hint = "this is a fault of provision: please report it with\n" + text
    return StageError(
        f"a fault in the stage {name}: {type(error).__name__}: {error}", "", hint, "error"
    )
