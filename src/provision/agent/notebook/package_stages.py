"""The stages that install the lock's packages: compare, install, audit, canary."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence

from ..core.files import write_json_object
from ..core.installed_packages import InstalledPackage, format_counts
from ..core.own_wheels import find_outdated_packages
from ..core.process import NOT_STARTED, TIMED_OUT, ProcessResult, run_process
from . import package_backup, pip_install
from .errors import StageError
from .kernel import find_kernel_start_error
from .loaded_modules import find_packages_in_use, inspect_loaded_modules
from .output import format_package_count
from .package_diff import (
    PackageDiff,
    compare_packages,
    find_protected_changes,
    find_unpredicted_changes,
)
from .session import INSTALL_RESULT_FILE, Session
from .uv_tool import find_uv
from .venv import is_environment_usable, make_environment

_INSTALL_S = 7200.0
_OFFLINE = re.compile(
    r"dns error|Connection refused|Network is unreachable|timed out|Could not connect"
    r"|error sending request|client error"
)


def compare_stage(session: Session) -> None:
    """Print the lock's changes; stop before a change of the kernel's own packages."""
    document = session.document
    has_packages = document.shared or is_environment_usable(session)
    installed = session.list_packages() if has_packages else {}
    session.comparison = comparison = _compare_packages(session, installed)
    if not document.shared:
        count = len(comparison.added)
        in_new = f"{count} to install, in a separate environment"
        session.print_line(comparison.summary if installed else in_new)
        return
    session.print_line(comparison.summary)
    if document.runtime and not session.install_result:
        for text in find_unpredicted_changes(comparison, document.predicted_changed)[:5]:
            session.print_detail(f"the lock did not predict this: {text}")
    protected = document.protected - set(document.predicted_restart)
    if refused := find_protected_changes(comparison, protected):
        raise StageError(
            f"the lock would change packages that the kernel needs: {', '.join(refused[:8])}",
            "the kernel might not start again, so that the runtime would have to be deleted; "
            "nothing was installed",
            "set `isolation: venv` for this target, which leaves the kernel unchanged, or pin "
            "these packages in the spec to the versions on this runtime",
        )
    for name, flaw in list(comparison.damaged.items())[:5]:
        version = document.packages[name]
        session.print_detail(f"{name} {version} is damaged and will be reinstalled: {flaw}")


def install_stage(session: Session) -> None:
    """Back up the packages that will change, then install them."""
    document, comparison = session.document, session.comparison
    if comparison is None or (not comparison.to_install and session.install_result):
        session.print_line("nothing to install")
        return
    before = session.list_packages()
    if document.shared:
        large = package_backup.back_up_packages(session.folder, before, comparison.to_install)
        if large:
            session.print_detail(
                f"too large to back up: {', '.join(large)}; only a new runtime restores these "
                "packages"
            )
    uv = find_uv(session)
    if not document.shared:
        make_environment(session, uv)
    _record_packages_in_use(
        session, [before[name] for name in comparison.to_install if name in before]
    )
    if uv is None:
        pip_install.install_with_pip(session, comparison, before)
    else:
        _run_installer(session, uv, len(comparison.to_install))
    after = session.list_packages()
    session.installed_now = sum(
        after[name] != before.get(name) for name in document.packages if name in after
    )
    if not session.installed_now:
        session.print_line("nothing to install")
        return
    count = format_package_count(session.installed_now)
    session.print_line(f"installed {count}, each file checked against its hash")
    if document.shared:
        session.print_detail(f'to undo this: provision_cell.rollback("{session.folder}")')


def audit_stage(session: Session) -> None:
    """Print the packages' provenance; stop if one does not match the lock."""
    comparison = session.comparison
    if comparison is None or comparison.to_install or session.installed_now:
        comparison = _compare_packages(session, session.list_packages())
    if wrong := comparison.to_install:
        raise StageError(
            "installed packages do not match the lock: "
            f"{', '.join(wrong[:8])} ({len(wrong)} in total)",
            "another program is installing packages on this runtime",
            "run the cell again",
        )
    provenance = format_counts(session.provenance_counts) or "no packages"
    session.print_line(f"{provenance}: file sizes match the packages' RECORDs")
    if session.installed_now:
        for note in session.install_result.get("notes", [])[:5]:
            session.print_detail(f"note: {note}")


def canary_stage(session: Session) -> None:
    """Test whether a new kernel would start; if not, restore the packages and stop."""
    if not session.document.shared:
        session.print_line("not needed: the kernel's packages are unchanged")
        return
    installed = session.list_packages()
    if not session.notebook.in_kernel and "google-colab" not in installed:
        session.print_line("not needed: there is no kernel")
        return
    digest = _digest_packages(installed)
    if session.run_state.alive == digest:
        session.print_line("a new kernel has started since these packages were installed")
        return
    error = find_kernel_start_error(session.host, sys.executable, session.environ)
    if error:
        raise _undo_broken_kernel(session, error)
    session.run_state.alive = digest
    session.run_state.save(session.folder)
    session.print_line("a new kernel would start")


def _compare_packages(session: Session, installed: Mapping[str, InstalledPackage]) -> PackageDiff:
    outdated = () if session.wheels is None else find_outdated_packages(session.wheels, installed)
    wrong_records = session.list_packages_with_wrong_record()
    return compare_packages(session.document.packages, installed, wrong_records, outdated)


def roll_back_packages(session: Session) -> tuple[list[str], list[str]]:
    """Restore the packages of the lock; return those restored, and those that could not be."""
    installed = session.list_packages()
    done, left = package_backup.restore_packages(
        session.folder, installed, session.document.packages, sys.prefix
    )
    (session.folder / INSTALL_RESULT_FILE).unlink(missing_ok=True)
    session.run_state.alive = session.run_state.proven = ""
    session.run_state.in_use = []
    session.run_state.save(session.folder)
    return done, left


def _record_packages_in_use(session: Session, changing: Sequence[InstalledPackage]) -> None:
    """Record which changing packages this kernel has loaded, which is not visible afterwards."""
    if session.document.shared and session.notebook.in_kernel:
        in_use = find_packages_in_use(changing, inspect_loaded_modules(session.modules))
        session.run_state.in_use = sorted({*session.run_state.in_use, *in_use})
        session.run_state.save(session.folder)


def _run_installer(session: Session, uv: str, count: int) -> None:
    request, result = session.folder / "install.json", session.folder / INSTALL_RESULT_FILE
    write_json_object(request, session.install_request)
    argv = [sys.executable, "-I", str(session.folder / "installer.pyz"), "install"]
    argv += ["--document", str(request), "--result", str(result), "--uv", uv]
    session.print_line(
        f"installing {format_package_count(count)} with uv"
        if count
        else "checking every file in the installed packages"
    )
    try:
        answer = run_process(
            argv,
            _INSTALL_S,
            session.environ_without_secrets,
            session.folder,
            session.print_heartbeat,
        )
    finally:
        # Addresses of mirrors may contain passwords.
        request.unlink(missing_ok=True)
    (session.folder / "installer.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
    if answer.code:
        raise _installer_error(answer)


def _installer_error(answer: ProcessResult) -> StageError:
    if answer.code in (TIMED_OUT, NOT_STARTED):
        return StageError(
            "the installer did not finish",
            answer.output_tail,
            "run the cell again; the downloaded files are kept",
        )
    what = f"the installer failed (exit code {answer.code})"
    hint, reasons = "", list[str]()
    for line in reversed(answer.stderr.splitlines()):
        if line.startswith("error: "):
            what = line.removeprefix("error: ")
        elif line.startswith("hint: "):
            hint = line.removeprefix("hint: ")
        else:
            reasons.insert(0, line.strip())
    why = "\n".join(reasons)
    if not hint and _OFFLINE.search(why):
        hint = "the index cannot be reached: check the network, then run the cell again"
    default_hint = "nothing was removed; fix the error above, then run the cell again"
    return StageError(what, "\n".join(why.splitlines()[-12:]), hint or default_hint)


def _undo_broken_kernel(session: Session, kernel_error: str) -> StageError:
    """Restore the packages if this run has changed them; return the error to raise."""
    if session.run_state.alive and not session.installed_now:
        return StageError(
            f"could not start a new kernel: {kernel_error}",
            "this run changed nothing, and a new kernel could start after the cell had "
            "installed its packages, so something else has changed since then",
            "do not restart this kernel before this is fixed; provision_cell.rollback(FOLDER) "
            "restores the packages that this cell changed",
            "error",
        )
    done, left = roll_back_packages(session)
    outcome = "this cell did not change any packages"
    if done:
        outcome = f"restored {format_package_count(len(done))}"
    if left:
        outcome += f"; not restored: {', '.join(left[:8])}"
    state = "a new kernel can start again, and the runtime can be used as before"
    if find_kernel_start_error(session.host, sys.executable, session.environ):
        state = "a new kernel does not start without these packages either"
        if done:
            state = (
                "a new kernel still does not start: do not restart this kernel; delete the "
                "runtime to get a new one"
            )
    return StageError(
        f"a new kernel would not start with these packages: {kernel_error}",
        f"{outcome}; {state}",
        "set `isolation: venv` for this target, which leaves the kernel unchanged, or change "
        "the packages that the message mentions",
        "error",
    )


def _digest_packages(installed: Mapping[str, InstalledPackage]) -> str:
    lines = sorted(
        f"{package.name} {package.version} {package.stamp}" for package in installed.values()
    )
    return hashlib.sha256("\n".join([sys.executable, *lines]).encode()).hexdigest()
