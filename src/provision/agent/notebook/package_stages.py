"""The packages of the lock brought here: the environment where it is one of its own, the installer,
and the way back from what it did.
"""

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


def compare_stage(course: Session) -> None:
    """Say what the lock changes here; stop before it changes what the kernel lives on."""
    there = (
        course.list_packages() if course.document.shared or is_environment_usable(course) else {}
    )
    course.comparison = comparison = compare_packages(
        course.document.packages, there, course.list_packages_with_wrong_record()
    )
    course.printer.print_stage_line(
        "compare",
        comparison.summary
        if course.document.shared or there
        else f"{len(comparison.added)} to install, in an environment of its own",
    )
    if not course.document.shared:
        return
    for text in (
        find_unpredicted_changes(comparison, course.document.predicted_changed)[:5]
        if course.document.runtime and not course.install_result
        else ()
    ):
        course.printer.print_detail(f"not as the catalogue lists it: {text}")
    if refused := find_protected_changes(
        comparison, course.document.protected - set(course.document.predicted_restart)
    ):
        raise StageError(
            f"the lock would change what this notebook's kernel lives on: {', '.join(refused[:8])}",
            "after that the kernel may not come back, and the runtime would have to be "
            "deleted; nothing was installed",
            "set isolation: venv for this target, which leaves the kernel alone, or pin "
            "these packages in the spec to the versions that are here",
        )
    for name, flaw in list(comparison.damaged.items())[:5]:
        course.printer.print_detail(
            f"{name} {course.document.packages[name]} is damaged and will be installed anew: {flaw}"
        )


def install_stage(course: Session) -> None:
    """Install what differs; the state before is kept first. Nothing to do where all is as locked
    and this cell has seen to it.
    """
    comparison = course.comparison
    if comparison is None or (not comparison.to_install and course.install_result):
        course.printer.print_stage_line("install", "nothing to install")
        return
    before = course.list_packages()
    _keep_the_way_back(course, before, comparison.to_install)
    uv = find_uv(
        course.document,
        course.folder,
        sys.executable,
        course.environ_without_secrets,
        course.printer.print_detail,
    )
    if not course.document.shared:
        make_environment(course, uv)
    _note_what_is_in_use(course, [before[name] for name in comparison.to_install if name in before])
    if uv is None:
        managed = (
            pip_install.is_externally_managed(sys.prefix != sys.base_prefix)
            and course.document.shared
        )
        if comparison.to_install:
            pip_install.install_with_pip(
                course.document,
                comparison,
                course.folder,
                course.python,
                managed,
                course.environ_without_secrets,
                course.print_heartbeat,
            )
        pip_install.write_install_result(
            course.document, before, course.list_packages(), course.folder / INSTALL_RESULT_FILE
        )
    else:
        _by_installer(course, uv)
    after = course.list_packages()
    course.installed_now = sum(
        after[name] != before.get(name) for name in course.document.packages if name in after
    )
    done = (
        f"{format_package_count(course.installed_now)} installed, each file checked against "
        "its hash"
    )
    course.printer.print_stage_line(
        "install", done if course.installed_now else "nothing to install"
    )
    if course.installed_now and course.document.shared:
        course.printer.print_detail(f'the way back: provision_cell.rollback("{course.folder}")')


def audit_stage(course: Session) -> None:
    """Say how each package came there; stop where one is not as locked after all."""
    looked = (
        course.comparison
        if course.comparison and not course.comparison.to_install and not course.installed_now
        else None
    )
    left = looked or compare_packages(
        course.document.packages, course.list_packages(), course.list_packages_with_wrong_record()
    )
    if left.to_install:
        raise StageError(
            f"{len(left.to_install)} packages are not as locked: {', '.join(left.to_install[:8])}",
            "something else installs packages here",
            "run the cell again",
        )
    told = ", ".join(f"{count} {kind}" for kind, count in course.provenance_counts.items() if count)
    course.printer.print_stage_line(
        "audit", f"{told or 'no packages'}: files have the sizes that their packages list"
    )
    for line in course.install_result.get("notes", [])[:5] if course.installed_now else ():
        course.printer.print_detail(f"note: {line}")


def canary_stage(course: Session) -> None:
    """Try what a new kernel imports; where it would not come up, put the packages back and stop."""
    if not course.document.shared or not (
        course.notebook.in_kernel or "google-colab" in course.list_packages()
    ):
        course.printer.print_stage_line(
            "canary",
            "not needed: the kernel's packages are not touched"
            if not course.document.shared
            else "no kernel runs this",
        )
        return
    now = _digest_of_changes(course)
    if course.run_state.alive == now:
        course.printer.print_stage_line(
            "canary", "a new kernel came up after these packages were installed"
        )
        return
    death = find_kernel_start_error(course.host, sys.executable, course.environ)
    if not death:
        course.run_state.alive = now
        course.run_state.save(course.folder)
        course.printer.print_stage_line("canary", "a new kernel would come up")
        return
    _bury(course, death)


def roll_back_packages(course: Session) -> tuple[list[str], list[str]]:
    """Bring the packages of the lock back to what they were before this cell; return those that are
    back, and those that could not be.
    """
    there = course.list_packages()
    done, left = package_backup.restore_packages(
        course.folder, there, course.document.packages, sys.prefix
    )
    (course.folder / INSTALL_RESULT_FILE).unlink(missing_ok=True)
    course.run_state.alive = course.run_state.proven = ""
    course.run_state.in_use = []
    course.run_state.save(course.folder)
    return done, left


def _keep_the_way_back(
    course: Session, before: Mapping[str, InstalledPackage], work: tuple[str, ...]
) -> None:
    if not course.document.shared:
        return
    large = package_backup.back_up_packages(course.folder, before, work)
    if large:
        course.printer.print_detail(
            f"too large to keep a copy of: {', '.join(large)}; a new runtime brings them back"
        )


def _note_what_is_in_use(course: Session, changing: Sequence[InstalledPackage]) -> None:
    """Write down what this kernel has loaded of what is about to change: afterwards that cannot be
    told.
    """
    if course.document.shared and course.notebook.in_kernel:
        course.run_state.in_use = sorted(
            {
                *course.run_state.in_use,
                *find_packages_in_use(changing, inspect_loaded_modules(course.modules)),
            }
        )
        course.run_state.save(course.folder)


def _by_installer(course: Session, uv: str) -> None:
    document, result = course.folder / "install.json", course.folder / INSTALL_RESULT_FILE
    write_json_object(document, {**course.document.install, "python": course.python})
    words = ["install", "--document", str(document), "--result", str(result), "--uv", uv]
    count = len(course.comparison.to_install) if course.comparison else 0
    course.printer.print_stage_line(
        "install",
        f"{format_package_count(count)} by uv"
        if count
        else "looking at every file of the packages that are there",
    )
    try:
        answer = run_process(
            [sys.executable, "-I", str(course.folder / "installer.pyz"), *words],
            _INSTALL_S,
            course.environ_without_secrets,
            course.folder,
            course.print_heartbeat,
        )
    finally:
        # Addresses of mirrors may hold passwords.
        document.unlink(missing_ok=True)
    (course.folder / "installer.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
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


def _bury(course: Session, death: str) -> None:
    if course.run_state.alive and not course.installed_now:
        why = (
            "this cell changed nothing now, and a new kernel came up after it had installed "
            "its packages: something else was changed since"
        )
        hint = (
            "do not restart this kernel before that is put right; "
            "provision_cell.rollback(FOLDER) puts back what this cell changed"
        )
        raise StageError(f"a new kernel would not come up: {death}", why, hint, "error")
    done, left = roll_back_packages(course)
    after = find_kernel_start_error(course.host, sys.executable, course.environ)
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


def _digest_of_changes(course: Session) -> str:
    there = course.list_packages()
    told = sorted(f"{dist.name} {dist.version} {dist.stamp}" for dist in there.values())
    return hashlib.sha256("\n".join([sys.executable, *told]).encode()).hexdigest()
