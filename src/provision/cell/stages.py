"""The stages of a cell in their order, and how a run goes through them: each is safe to repeat, and a failure leaves the runtime usable."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Sequence

from .checking import differences, moved
from .course import Course
from .detecting import detect
from .environment import environment_stage
from .machine import look
from .packages import audit_stage, canary_stage, compare_stage, install_stage
from .reporting import forget_report, report_stage, write_status
from .stale import loaded_here, stale, started_ns
from .stopped import Stopped
from .system import install as install_system
from .system import missing
from .undoing import versions_before
from .verifying import verify_stage

Stage = Callable[[Course], None]


def detect_stage(course: Course) -> None:
    """Say where this runs and what the machine is."""
    course.place = detect(course.environ, course.modules, os.path.exists, course.notebook.in_kernel)
    course.machine = machine = look(course.base, course.environ)
    cards = f"{len(machine.cards)} x {machine.cards[0].name}, driver {machine.driver}" if machine.cards else "no GPU"
    course.tell.say("detect", f"{course.place.value}: Python {machine.python}, {machine.os}, {cards}")
    brought = versions_before(course.folder) or {name: dist.version for name, dist in course.packages().items()}
    course.moved = moved(course.document, machine, brought.get("torch") if course.document.shared else None)


def check_stage(course: Course) -> None:
    """Check the machine before anything is installed."""
    if course.machine is None:
        return
    for one in course.moved:
        course.tell.say("check", f"moved: {one.line} (as of {course.document.runtime.as_of})" if course.document.runtime else one.line)
    found = differences(course.document, course.machine)
    for difference in found:
        course.tell.say("check", difference.what)
    ending = [one for one in found if one.ends and (one.final or not course.continue_anyway)]
    if ending:
        hint = ending[0].hint
        if not ending[0].final:
            hint += "\nor set CONTINUE_ANYWAY in the cell, which installs in spite of it"
        raise Stopped(ending[0].what, "\n".join(one.what for one in ending[1:]), hint)
    if any(one.ends for one in found):
        course.tell.say("check", "going on anyway, as chosen")
    elif not found:
        course.tell.say("check", "this machine is the one that was asked for")


def system_stage(course: Course) -> None:
    """Install the system packages that are missing."""
    wanted = course.document.system_packages
    names = missing(wanted, course.foreign)
    if names:
        course.tell.say("system", f"installing {', '.join(names)}")
        install_system(names, course.foreign, course.beat)
    elif wanted:
        course.tell.say("system", f"{len(wanted)} packages are there")


def restart_stage(course: Course) -> None:
    """Stop for a restart where this kernel has loaded something that was changed since, and only then."""
    there = course.packages()
    locked = [there[name] for name in course.document.packages if name in there]
    if course.document.shared and course.notebook.in_kernel:
        course.stale = stale(locked, loaded_here(course.modules), course.ledger.in_use, started_ns(course.ledger.kernel))
    if not course.stale:
        course.tell.say("restart", "not needed")
        return
    names = ", ".join(course.stale)
    how = "the runtime restarts now" if course.restart else "restart it: Runtime > Restart session (Jupyter: Kernel > Restart)"
    if course.place.is_colab and not course.restart:
        course.notebook.restart_button(course.stale, course.document.nonce)
    hint = f"{how}; then run the cells again: nothing is installed twice"
    raise Stopped(f"this kernel has loaded other versions of {names} than those that are installed now", "", hint, "restart-needed")


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
PROOF = ("detect", "audit", "restart", "environment", "verify", "report")
"""The stages of a verification alone."""


def go(course: Course, stages: Sequence[tuple[str, Stage]]) -> None:
    """Go through stages. Raises Stopped, after it has written down what became of the run."""
    seconds: dict[str, float] = {}
    name = stages[0][0]
    try:
        forget_report(course.base)
        for name, stage in stages:
            course.outcome, course.message = "stopped", f"the run had not ended its stage {name} when this was written"
            write_status(course, name, seconds)
            began = time.monotonic()
            try:
                stage(course)
            finally:
                seconds[name] = round(time.monotonic() - began, 3)
        write_status(course, name, seconds)
    except Stopped as stopped:
        raise _end(course, name, seconds, stopped) from None
    except KeyboardInterrupt:
        hint = "run the cell again: what is done is not done twice"
        raise _end(course, name, seconds, Stopped(f"interrupted in the stage {name}", "the programs that it had started were ended", hint)) from None
    except OSError as error:
        hint = "free some disk space, or make the folder writable; PROVISION_CELL_BASE names another one"
        raise _end(course, name, seconds, Stopped(f"the stage {name} cannot use a file", _told(error), hint, "error")) from None
    except Exception as error:  # noqa: BLE001 - a fault of our own: the runtime stays usable, and it is told
        raise _end(course, name, seconds, _fault(course, name, error)) from None


def _end(course: Course, name: str, seconds: dict[str, float], stopped: Stopped) -> Stopped:
    clean = course.tell.clean
    stopped = Stopped(clean(stopped.what), clean(stopped.why), clean(stopped.hint), stopped.outcome)
    course.outcome, course.message, course.hint = stopped.outcome, stopped.what, stopped.hint
    try:
        write_status(course, name, seconds)
    except OSError as error:
        course.tell.more(f"the status cannot be written: {_told(error)}")
    if stopped.outcome == "restart-needed" and course.restart and course.notebook.in_kernel:
        course.notebook.restart()
    return stopped


def _told(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _fault(course: Course, name: str, error: Exception) -> Stopped:
    text = course.tell.clean("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    log = course.folder / "fault.log"
    try:
        log.write_text(text, encoding="utf-8")
        hint = f"this is a fault of provision: please report it with {log}"
    except OSError:
        hint = "this is a fault of provision: please report it with\n" + text
    return Stopped(f"a fault in the stage {name}: {type(error).__name__}: {error}", "", hint, "error")
