"""The stages that bring the lock's packages here: compare, install, audit, canary."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence

from ..core.files import write_json_object
from ..core.installed_packages import InstalledPackage
from ..core.process import NOT_STARTED, TIMED_OUT, ProcessResult, run_process
from . import package_backup, pip_install
from .errors import StageError
from .kernel_smoke_test import find_kernel_start_error
from .loaded_modules import find_packages_in_use, inspect_loaded_modules
from .output import format_package_count
from .package_diff import compare_packages, find_protected_changes, find_unpredicted_changes
from .session import INSTALL_RESULT_FILE, Session
from .uv_tool import find_uv
from .venv import is_environment_usable, make_environment

_INSTALL_S = 7200.0


def compare_stage(session: Session) -> None:
    """Print the lock's changes; stop before a change of what the kernel needs."""
    installed = (
        session.list_packages() if session.document.shared or is_environment_usable(session) else {}
    )
    session.comparison = comparison = compare_packages(
        session.document.packages, installed, session.list_packages_with_wrong_record()
    )
    session.printer.print_stage_line(
        "compare",
        comparison.summary
        if session.document.shared or installed
        else f"{len(comparison.added)} to install, in an environment of its own",
    )
    if not session.document.shared:
        return
    for text in (
        find_unpredicted_changes(comparison, session.document.predicted_changed)[:5]
        if session.document.runtime and not session.install_result
        else ()
    ):
        session.printer.print_detail(f"not as the catalogue lists it: {text}")
    if refused := find_protected_changes(
        comparison, session.document.protected - set(session.document.predicted_restart)
    ):
        raise StageError(
            f"the lock would change what this notebook's kernel lives on: {', '.join(refused[:8])}",
            "after that the kernel may not come back, and the runtime would have to be "
            "deleted; nothing was installed",
            "set isolation: venv for this target, which leaves the kernel alone, or pin "
            "these packages in the spec to the versions that are here",
        )
    for name, flaw in list(comparison.damaged.items())[:5]:
        version = session.document.packages[name]
        session.printer.print_detail(
            f"{name} {version} is damaged and will be installed anew: {flaw}"
        )


def install_stage(session: Session) -> None:
    """Back up what will change, then install it; nothing if all is as locked and was audited."""
    comparison = session.comparison
    if comparison is None or (not comparison.to_install and session.install_result):
        session.printer.print_stage_line("install", "nothing to install")
        return
    before = session.list_packages()
    _keep_the_way_back(session, before, comparison.to_install)
    uv = find_uv(
        session.document,
        session.folder,
        sys.executable,
        session.environ_without_secrets,
        session.printer.print_detail,
    )
    if not session.document.shared:
        make_environment(session, uv)
    _note_what_is_in_use(
        session, [before[name] for name in comparison.to_install if name in before]
    )
    if uv is None:
        managed = (
            pip_install.is_externally_managed(sys.prefix != sys.base_prefix)
            and session.document.shared
        )
        if comparison.to_install:
            pip_install.install_with_pip(
                session.document,
                comparison,
                session.folder,
                session.python,
                managed,
                session.environ_without_secrets,
                session.print_heartbeat,
            )
        pip_install.write_install_result(
            session.document, before, session.list_packages(), session.folder / INSTALL_RESULT_FILE
        )
    else:
        _by_installer(session, uv)
    after = session.list_packages()
    session.installed_now = sum(
        after[name] != before.get(name) for name in session.document.packages if name in after
    )
    done = (
        f"{format_package_count(session.installed_now)} installed, each file checked against "
        "its hash"
    )
    session.printer.print_stage_line(
        "install", done if session.installed_now else "nothing to install"
    )
    if session.installed_now and session.document.shared:
        session.printer.print_detail(f'the way back: provision_cell.rollback("{session.folder}")')


def audit_stage(session: Session) -> None:
    """Print the packages' provenance; stop if one is not as locked."""
    looked = (
        session.comparison
        if session.comparison and not session.comparison.to_install and not session.installed_now
        else None
    )
    left = looked or compare_packages(
        session.document.packages,
        session.list_packages(),
        session.list_packages_with_wrong_record(),
    )
    if left.to_install:
        raise StageError(
            f"{len(left.to_install)} packages are not as locked: {', '.join(left.to_install[:8])}",
            "something else installs packages here",
            "run the cell again",
        )
    told = ", ".join(
        f"{count} {kind}" for kind, count in session.provenance_counts.items() if count
    )
    session.printer.print_stage_line(
        "audit", f"{told or 'no packages'}: files have the sizes that their packages list"
    )
    for line in session.install_result.get("notes", [])[:5] if session.installed_now else ():
        session.printer.print_detail(f"note: {line}")


def canary_stage(session: Session) -> None:
    """Import what a new kernel imports; if that fails, restore the packages and stop."""
    if not session.document.shared or not (
        session.notebook.in_kernel or "google-colab" in session.list_packages()
    ):
        session.printer.print_stage_line(
            "canary",
            "not needed: the kernel's packages are not touched"
            if not session.document.shared
            else "no kernel runs this",
        )
        return
    now = _digest_of_changes(session)
    if session.run_state.alive == now:
        session.printer.print_stage_line(
            "canary", "a new kernel came up after these packages were installed"
        )
        return
    death = find_kernel_start_error(session.host, sys.executable, session.environ)
    if not death:
        session.run_state.alive = now
        session.run_state.save(session.folder)
        session.printer.print_stage_line("canary", "a new kernel would come up")
        return
    _bury(session, death)


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


def _keep_the_way_back(
    session: Session, before: Mapping[str, InstalledPackage], work: tuple[str, ...]
) -> None:
    if not session.document.shared:
        return
    large = package_backup.back_up_packages(session.folder, before, work)
    if large:
        session.printer.print_detail(
            f"too large to keep a copy of: {', '.join(large)}; a new runtime brings them back"
        )


def _note_what_is_in_use(session: Session, changing: Sequence[InstalledPackage]) -> None:
    """Record which changing packages this kernel has loaded: afterwards that is not visible."""
    if session.document.shared and session.notebook.in_kernel:
        session.run_state.in_use = sorted(
            {
                *session.run_state.in_use,
                *find_packages_in_use(changing, inspect_loaded_modules(session.modules)),
            }
        )
        session.run_state.save(session.folder)


def _by_installer(session: Session, uv: str) -> None:
    document, result = session.folder / "install.json", session.folder / INSTALL_RESULT_FILE
    write_json_object(document, {**session.document.install, "python": session.python})
    arguments = ["install", "--document", str(document), "--result", str(result), "--uv", uv]
    count = len(session.comparison.to_install) if session.comparison else 0
    session.printer.print_stage_line(
        "install",
        f"{format_package_count(count)} by uv"
        if count
        else "looking at every file of the packages that are there",
    )
    try:
        answer = run_process(
            [sys.executable, "-I", str(session.folder / "installer.pyz"), *arguments],
            _INSTALL_S,
            session.environ_without_secrets,
            session.folder,
            session.print_heartbeat,
        )
    finally:
        # Addresses of mirrors may hold passwords.
        document.unlink(missing_ok=True)
    (session.folder / "installer.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
    if answer.code:
        raise _why_not(answer)


def _why_not(answer: ProcessResult) -> StageError:
    if answer.code in (TIMED_OUT, NOT_STARTED):
        return StageError(
            "the installer did not end",
            answer.output_tail,
            "run the cell again: what was downloaded is kept",
        )
    lines = answer.stderr.splitlines()
    what = next(
        (line.removeprefix("error: ") for line in lines if line.startswith("error: ")),
        f"the installer failed (exit code {answer.code})",
    )
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    why = "\n".join(line.strip() for line in lines if not line.startswith(("error: ", "hint: ")))
    offline = re.search(
        r"dns error|Connection refused|Network is unreachable|timed out|Could not "
        r"connect|error sending request|client error",
        why,
    )
    if offline and not hints:
        hints = ["the index cannot be reached: check the network, then run the cell again"]
    return StageError(
        what,
        "\n".join(why.splitlines()[-12:]),
        hints[0]
        if hints
        else "nothing was removed; put right what is said above, then run the cell again",
    )


def _bury(session: Session, death: str) -> None:
    if session.run_state.alive and not session.installed_now:
        why = (
            "this cell changed nothing now, and a new kernel came up after it had installed "
            "its packages: something else was changed since"
        )
        hint = (
            "do not restart this kernel before that is put right; "
            "provision_cell.rollback(FOLDER) puts back what this cell changed"
        )
        raise StageError(f"a new kernel would not come up: {death}", why, hint, "error")
    done, left = roll_back_packages(session)
    after = find_kernel_start_error(session.host, sys.executable, session.environ)
    back = (
        f"{len(done)} packages were put back as they were"
        if done
        else "no package was changed by this cell"
    )
    if left:
        back += f"; not put back: {', '.join(left[:8])}"
    if after and done:
        state = (
            "a new kernel does not come up now either: do not restart this one; delete the "
            "runtime to get a fresh one"
        )
    elif after:
        state = "it does not come up without them either"
    else:
        state = "a new kernel comes up again; the runtime can be used as before"
    hint = (
        "set isolation: venv for this target, which leaves the kernel alone, or change the "
        "packages that the message names"
    )
    raise StageError(
        f"a new kernel would not come up with these packages: {death}",
        f"{back}; {state}",
        hint,
        "error",
    )


def _digest_of_changes(session: Session) -> str:
    installed = session.list_packages()
    told = sorted(f"{dist.name} {dist.version} {dist.stamp}" for dist in installed.values())
    return hashlib.sha256("\n".join([sys.executable, *told]).encode()).hexdigest()
