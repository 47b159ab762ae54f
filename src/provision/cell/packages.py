"""The packages of the lock brought here: the environment where it is one of its own, the installer, and the way back from what it did."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence

from . import by_pip, undoing
from .canary import kernel_death
from .comparing import compare, protected_changes, surprises
from .course import INSTALLED, Course
from .inventory import Dist
from .ledger import write_json
from .programs import NOT_STARTED, TIME_UP, Answer, ask
from .stale import in_use, loaded_here
from .stopped import Stopped
from .telling import packages
from .tools import find_uv
from .venv import make_environment, starts

_INSTALL_S = 7200.0


def compare_stage(course: Course) -> None:
    """Say what the lock changes here; stop before it changes what the kernel lives on."""
    there = course.packages() if course.document.shared or starts(course) else {}
    course.comparison = comparison = compare(course.document.packages, there, course.unfit())
    course.tell.say("compare", comparison.line if course.document.shared or there else f"{len(comparison.added)} to install, in an environment of its own")
    if not course.document.shared:
        return
    for text in surprises(comparison, course.document.predicted_changed)[:5] if course.document.runtime and not course.result else ():
        course.tell.more(f"not as the catalogue lists it: {text}")
    if refused := protected_changes(comparison, course.document.protected - set(course.document.predicted_restart)):
        raise Stopped(
            f"the lock would change what this notebook's kernel lives on: {', '.join(refused[:8])}",
            "after that the kernel may not come back, and the runtime would have to be deleted; nothing was installed",
            "set isolation: venv for this target, which leaves the kernel alone, or pin these packages in the spec to the versions that are here",
        )
    for name, flaw in list(comparison.damaged.items())[:5]:
        course.tell.more(f"{name} {course.document.packages[name]} is damaged and will be installed anew: {flaw}")


def install_stage(course: Course) -> None:
    """Install what differs; the state before is kept first. Nothing to do where all is as locked and this cell has seen to it."""
    comparison = course.comparison
    if comparison is None or (not comparison.work and course.result):
        course.tell.say("install", "nothing to install")
        return
    before = course.packages()
    _keep_the_way_back(course, before, comparison.work)
    uv = find_uv(course.document, course.folder, sys.executable, course.foreign, course.tell.more)
    if not course.document.shared:
        make_environment(course, uv)
    _note_what_is_in_use(course, [before[name] for name in comparison.work if name in before])
    if uv is None:
        managed = by_pip.is_managed(sys.prefix != sys.base_prefix) and course.document.shared
        if comparison.work:
            by_pip.install(course.document, comparison, course.folder, course.python, managed, course.foreign, course.beat)
        by_pip.note(course.document, before, course.packages(), course.folder / INSTALLED)
    else:
        _by_installer(course, uv)
    after = course.packages()
    course.installed_now = sum(after[name] != before.get(name) for name in course.document.packages if name in after)
    done = f"{packages(course.installed_now)} installed, each file checked against its hash"
    course.tell.say("install", done if course.installed_now else "nothing to install")
    if course.installed_now and course.document.shared:
        course.tell.more(f'the way back: provision_cell.rollback("{course.folder}")')


def audit_stage(course: Course) -> None:
    """Say how each package came there; stop where one is not as locked after all."""
    looked = course.comparison if course.comparison and not course.comparison.work and not course.installed_now else None
    left = looked or compare(course.document.packages, course.packages(), course.unfit())
    if left.work:
        raise Stopped(f"{len(left.work)} packages are not as locked: {', '.join(left.work[:8])}", "something else installs packages here", "run the cell again")
    told = ", ".join(f"{count} {kind}" for kind, count in course.counts.items() if count)
    course.tell.say("audit", f"{told or 'no packages'}: files have the sizes that their packages list")
    for line in course.result.get("notes", [])[:5] if course.installed_now else ():
        course.tell.more(f"note: {line}")


def canary_stage(course: Course) -> None:
    """Try what a new kernel imports; where it would not come up, put the packages back and stop."""
    if not course.document.shared or not (course.notebook.in_kernel or "google-colab" in course.packages()):
        course.tell.say("canary", "not needed: the kernel's packages are not touched" if not course.document.shared else "no kernel runs this")
        return
    now = _digest_of_changes(course)
    if course.ledger.alive == now:
        course.tell.say("canary", "a new kernel came up after these packages were installed")
        return
    death = kernel_death(course.place, sys.executable, course.environ)
    if not death:
        course.ledger.alive = now
        course.ledger.save(course.folder)
        course.tell.say("canary", "a new kernel would come up")
        return
    _bury(course, death)


def roll_back(course: Course) -> tuple[list[str], list[str]]:
    """Bring the packages of the lock back to what they were before this cell; return those that are back, and those that could not be."""
    there = course.packages()
    done, left = undoing.put_back(course.folder, there, course.document.packages, sys.prefix)
    (course.folder / INSTALLED).unlink(missing_ok=True)
    course.ledger.alive = course.ledger.proven = ""
    course.ledger.in_use = []
    course.ledger.save(course.folder)
    return done, left


def _keep_the_way_back(course: Course, before: Mapping[str, Dist], work: tuple[str, ...]) -> None:
    if not course.document.shared:
        return
    large = undoing.save(course.folder, before, work)
    if large:
        course.tell.more(f"too large to keep a copy of: {', '.join(large)}; a new runtime brings them back")


def _note_what_is_in_use(course: Course, changing: Sequence[Dist]) -> None:
    """Write down what this kernel has loaded of what is about to change: afterwards that cannot be told."""
    if course.document.shared and course.notebook.in_kernel:
        course.ledger.in_use = sorted({*course.ledger.in_use, *in_use(changing, loaded_here(course.modules))})
        course.ledger.save(course.folder)


def _by_installer(course: Course, uv: str) -> None:
    document, result = course.folder / "install.json", course.folder / INSTALLED
    write_json(document, {**course.document.install, "python": course.python})
    words = ["install", "--document", str(document), "--result", str(result), "--uv", uv]
    count = len(course.comparison.work) if course.comparison else 0
    course.tell.say("install", f"{packages(count)} by uv" if count else "looking at every file of the packages that are there")
    try:
        answer = ask([sys.executable, "-I", str(course.folder / "installer.pyz"), *words], _INSTALL_S, course.foreign, course.folder, course.beat)
    finally:
        # Addresses of mirrors may hold passwords.
        document.unlink(missing_ok=True)
    (course.folder / "installer.log").write_text(answer.stdout + answer.stderr, encoding="utf-8")
    if answer.code:
        raise _why_not(answer)


def _why_not(answer: Answer) -> Stopped:
    if answer.code in (TIME_UP, NOT_STARTED):
        return Stopped("the installer did not end", answer.said, "run the cell again: what was downloaded is kept")
    lines = answer.stderr.splitlines()
    what = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), f"the installer failed (exit code {answer.code})")
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    why = "\n".join(line.strip() for line in lines if not line.startswith(("error: ", "hint: ")))
    offline = re.search(r"dns error|Connection refused|Network is unreachable|timed out|Could not connect|error sending request|client error", why)
    if offline and not hints:
        hints = ["the index cannot be reached: check the network, then run the cell again"]
    return Stopped(what, "\n".join(why.splitlines()[-12:]), hints[0] if hints else "nothing was removed; put right what is said above, then run the cell again")


def _bury(course: Course, death: str) -> None:
    if course.ledger.alive and not course.installed_now:
        why = "this cell changed nothing now, and a new kernel came up after it had installed its packages: something else was changed since"
        hint = "do not restart this kernel before that is put right; provision_cell.rollback(FOLDER) puts back what this cell changed"
        raise Stopped(f"a new kernel would not come up: {death}", why, hint, "error")
    done, left = roll_back(course)
    after = kernel_death(course.place, sys.executable, course.environ)
    back = f"{len(done)} packages were put back as they were" if done else "no package was changed by this cell"
    if left:
        back += f"; not put back: {', '.join(left[:8])}"
    if after and done:
        state = "a new kernel does not come up now either: do not restart this one; delete the runtime to get a fresh one"
    elif after:
        state = "it does not come up without them either"
    else:
        state = "a new kernel comes up again; the runtime can be used as before"
    hint = "set isolation: venv for this target, which leaves the kernel alone, or change the packages that the message names"
    raise Stopped(f"a new kernel would not come up with these packages: {death}", f"{back}; {state}", hint, "error")


def _digest_of_changes(course: Course) -> str:
    there = course.packages()
    told = sorted(f"{dist.name} {dist.version} {dist.stamp}" for dist in there.values())
    return hashlib.sha256("\n".join([sys.executable, *told]).encode()).hexdigest()
