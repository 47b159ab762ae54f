"""Judges the interpreter, the installed packages and their files against the lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...core.versions import UnreadableVersion, is_same_version, read_version
from ..expectations import Expectations
from ..model import Judgement
from .judgement import (
    JudgeInput,
    describe_unset,
    fails,
    format_list,
    passes,
    skipped,
    unknown,
    warns,
)


def version_differences(expected: Expectations, found: Mapping[str, str]) -> list[dict[str, Any]]:
    """Locked packages whose installed version is another one; `observed` is None when a package is
    not installed.
    """
    return _differing(expected.packages, found)


def conda_version_differences(
    expected: Expectations, brought: Mapping[str, str] | None, found: Mapping[str, str]
) -> list[dict[str, Any]]:
    """As `differences`, of the Python packages that the locked files of conda brought, in the
    version in which each brought it.
    """
    return _differing(
        {
            name: version
            for name, version in (brought or {}).items()
            if name not in expected.packages
        },
        found,
    )


def _differing(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "expected": version, "observed": found.get(name)}
        for name, version in sorted(wanted.items())
        if name not in found or not is_same_version(version, found[name])
    ]


def _interpreter(case: JudgeInput) -> Judgement:
    minor, wanted = case.seen["python.minor"], case.expected.python_version
    expected, observed = (
        f"{wanted} under {case.expected.python_prefix}",
        f"{case.seen['python.version']} under {case.seen['_python.prefix']}",
    )
    if minor != ".".join(wanted.split(".")[:2]):
        cause = "the environment was made with another interpreter"
        return fails(
            f"Python {case.seen['python.version']} runs, the lock is for {wanted}",
            expected,
            observed,
            cause,
            f"make the environment again with Python {wanted}",
        )
    if not case.seen["python.prefix_matches"] and case.seen["_python.executable"].startswith(
        case.expected.python_prefix.rstrip("/") + "/"
    ):
        told = (
            f"{case.seen['_python.executable']} runs and takes its packages from "
            f"{case.seen['_python.prefix']}, not from its own environment"
        )
        cause = "the environment's pyvenv.cfg is missing or damaged, or PYTHONHOME is set"
        return fails(
            told,
            expected,
            observed,
            cause,
            "unset PYTHONHOME; else make the environment again from the lock",
        )
    if not case.seen["python.prefix_matches"]:
        return fails(
            f"{case.seen['_python.executable']} runs, which is not the environment's Python",
            expected,
            observed,
            "another environment is active, or a wrong Jupyter kernel is chosen",
            f"run {case.expected.python_prefix}/bin/python, or choose this environment's kernel",
        )
    return _as_it_was_made(case) or passes(f"Python {observed}", expected, observed)


def _as_it_was_made(case: JudgeInput) -> Judgement | None:
    live, made = case.seen["python.version"], case.seen.get("python.made_with")
    if case.seen.get("python.implementation", "cpython") != "cpython":
        cause = (
            "the environment was made with another kind of Python; wheels with code of their "
            "own are for CPython"
        )
        return fails(
            f"{case.seen['python.implementation']} runs, the lock is for CPython",
            "cpython",
            case.seen["python.implementation"],
            cause,
            "use CPython",
        )
    if made is None or re.sub(r"[^\d.].*", "", live) == made:
        return None
    cause = (
        "the Python beneath the environment was upgraded or replaced after the environment was made"
    )
    return warns(
        f"Python {live} runs in an environment that was made with {made}",
        made,
        live,
        cause,
        "make the environment again from the lock",
    )


def _locked_set(case: JudgeInput) -> Judgement:
    found, brought = case.seen["_packages.installed"], case.seen.get("_packages.brought", {})
    locked, wrong = len(case.expected.packages), version_differences(case.expected, found)
    damaged = case.seen.get("_packages.damaged", {})
    if not wrong and (of_conda := conda_version_differences(case.expected, brought, found)):
        told = [
            f"{one['name']} {one['observed'] or _absent(one['name'], damaged)}, conda's "
            f"locked file brought {one['expected']}"
            for one in of_conda
        ]
        return fails(
            f"{len(of_conda)} packages of conda differ: {format_list(told)}",
            locked,
            locked,
            *_why_versions_differ(of_conda, damaged),
        )
    if not wrong:
        return passes(
            f"all {locked} locked packages have their locked "
            f"version{_of_conda(case.expected, brought)}",
            locked,
            locked,
        )
    told = [
        f"{one['name']} {one['observed'] or _absent(one['name'], damaged)}, lock says "
        f"{one['expected']}"
        for one in wrong
    ]
    return fails(
        f"{len(wrong)} of {locked} locked packages differ: {format_list(told)}",
        locked,
        locked - len(wrong),
        *_why_versions_differ(wrong, damaged),
    )


def _of_conda(expected: Expectations, brought: Mapping[str, str] | None) -> str:
    """What is said besides of the Python packages that conda brought; None where it was not noted
    which they are.
    """
    if brought is None:
        return "; what conda brought besides was not noted, and is not compared"
    others = len(brought.keys() - expected.packages.keys())
    return f"; {others} more of conda have the version of their locked file" if others else ""


def _absent(name: str, damaged: Mapping[str, str]) -> str:
    return (
        f"is there without a METADATA that can be read (in {damaged[name]})"
        if name in damaged
        else "is not installed"
    )


def _why_versions_differ(
    wrong: list[dict[str, Any]], damaged: Mapping[str, str]
) -> tuple[str, str]:
    if all(one["name"] in damaged for one in wrong):
        return (
            (
                "an installation was interrupted, or the file was removed or may not be read "
                "by this user"
            ),
            "make the environment again from the lock",
        )
    if any(one["observed"] and _same_public(one["expected"], one["observed"]) for one in wrong):
        return (
            "the same release came from another index: its build (the part after +) differs",
            "make the environment again from the lock; do not add an extra index",
        )
    return (
        (
            "something was installed or removed after the environment was made, or another "
            "environment runs"
        ),
        "make the environment again from the lock",
    )


def _same_public(one: str, other: str) -> bool:
    try:
        return read_version(one).public_key == read_version(other).public_key
    except UnreadableVersion:
        return False


def _in_the_way(case: JudgeInput) -> Judgement:
    shadowed, away = case.seen["packages.shadowed"], case.seen["packages.elsewhere"]
    if shadowed:
        return fails(
            "modules outside the environment are imported instead of its own: "
            f"{format_list(shadowed)}",
            [],
            shadowed,
            "PYTHONPATH or the user's site-packages comes first on sys.path",
            "unset PYTHONPATH, set PYTHONNOUSERSITE=1, or rename the files",
        )
    if away:
        cause = "they are installed for the user, in another environment, or editable"
        return fails(
            f"locked packages are not in the environment: {format_list(away)}",
            [],
            away,
            cause,
            "make the environment again from the lock",
        )
    duplicates, unlocked = case.seen["packages.duplicates"], case.seen["packages.unlocked"]
    if case.expected.shared:
        return _beside_others(duplicates, case.seen["_packages.others"])
    if hidden := case.seen.get("packages.hidden_by_working_folder"):
        cause = "Python looks first in the folder of the script or notebook that it runs"
        told = (
            "a script in the working folder imports these from there instead of the installed "
            f"ones: {format_list(hidden)}"
        )
        return warns(told, [], hidden, cause, "rename the files or folders of these names")
    if duplicates:
        cause = "an install was interrupted, or two installers wrote into one environment"
        return warns(
            f"installed more than once: {format_list(duplicates)}",
            [],
            duplicates,
            cause,
            "make the environment again from the lock",
        )
    if unlocked:
        cause = "installed by hand, or brought by the image"
        return warns(
            f"installed but not locked: {format_list(unlocked)}",
            [],
            unlocked,
            cause,
            "add them to packages: and lock again, or remove them",
        )
    return passes("nothing outside the lock is installed or imported", "none", "none")


def _beside_others(duplicates: list[str], others: int) -> Judgement:
    """As `_in_the_way`, in an image's interpreter: what it brought besides is none of the lock's
    business.
    """
    if duplicates:
        cause = "the image brings a package in two places; the first on sys.path is used"
        return warns(
            f"locked packages are installed more than once: {format_list(duplicates)}",
            [],
            duplicates,
            cause,
            "nothing, while the first is the locked one",
        )
    return passes(
        f"nothing is imported instead of a locked package; {others} other packages of the "
        "image stay as they are",
        "none",
        "none",
    )


def _requirements(case: JudgeInput) -> Judgement:
    unmet, unread = case.seen["packages.unmet"], case.seen["packages.unread"]
    if unmet:
        cause = "the set was changed after it was resolved, or a requirement was overridden"
        return fails(
            format_list(unmet),
            [],
            unmet,
            cause,
            "lock again so that one resolver chooses the whole set, then make the "
            "environment again",
        )
    if unread:
        return unknown(f"requirements that could not be read: {format_list(unread)}", [])
    if case.expected.shared:
        others = case.seen["packages.unmet_unlocked"]
        return passes(
            "every locked package has what it "
            f"requires{f'; of the image: {format_list(others, 2)}' if others else ''}",
            "all met",
            "all met",
        )
    return passes("every installed package has what it requires", "all met", "all met")


def _files(case: JudgeInput) -> Judgement:
    altered, without = case.seen["packages.altered"], case.seen["packages.without_record"]
    started = case.seen["packages.stray_pth"] if case.seen["_packages.own"] else []
    if altered or started:
        count = case.seen["_packages.altered_count"]
        told = (
            [
                (
                    f"{count} {'file is' if count == 1 else 'files are'} not as installed: "
                    f"{_first(altered, count)}"
                )
            ]
            if altered
            else []
        )
        told += (
            [f"no package lists {format_list(started)}, which Python reads at each start"]
            if started
            else []
        )
        cause = (
            "after the installation, files of the environment were edited, replaced, removed, "
            "added or made unreadable"
        )
        fix = (
            "`provision apply` puts the environment right"
            if case.seen["_packages.own"]
            else "install the locked packages again"
        )
        return fails("; ".join(told), [], [*altered, *started], cause, fix)
    if without:
        return unknown(f"whether files were changed cannot be told: {format_list(without)}", [])
    return _remarks(case) or passes(
        _as_listed(case), case.seen["packages.files"], case.seen["packages.files"]
    )


def _first(altered: list[str], count: int) -> str:
    """As `listed`, where only the first of `count` are known."""
    return "; ".join(altered[:5]) + (f"; and {count - 5} more" if count > 5 else "")


def _as_listed(case: JudgeInput) -> str:
    files, hashed = case.seen["packages.files"], case.seen["_packages.hashed"]
    if hashed == files:
        return (
            f"{files} files of the locked packages have the size and sha256 that their RECORDs list"
        )
    if not case.seen.get("_packages.since_installed"):
        return f"{files} files of the locked packages have the size that their RECORDs list"
    beside = (
        f" ({hashed} of them have another time, and the sha256 that their RECORDs list)"
        if hashed
        else ""
    )
    return (
        f"{files} files of the locked packages have the size and time of change that they were "
        f"installed with{beside}"
    )


def _remarks(case: JudgeInput) -> Judgement | None:
    seen = case.seen
    if unfit := seen["packages.never_fitted"]:
        cause = (
            "the wheel itself lists other files than it holds, so a later change cannot be "
            "told from that"
        )
        return warns(
            "files do not fit their RECORD, and did not when they were installed: "
            f"{format_list(unfit)}",
            [],
            unfit,
            cause,
            "tell the package's makers",
        )
    if (
        stray := [*seen["packages.stray_pth"], *seen["packages.stray"]]
    ) and not case.expected.shared:
        cause = (
            "put there by hand or by a program"
            if seen["_packages.own"]
            else "put there by hand, by a program, or brought by the image"
        )
        return warns(
            f"{_as_listed(case)}; no package lists {format_list(stray)}",
            [],
            stray,
            cause,
            "remove what you do not know from site-packages",
        )
    return None


def _import(case: JudgeInput) -> Judgement:
    modules, elsewhere, live = (
        case.seen[f"_imported{part}.{case.subject}"] for part in ("", "_elsewhere", "_live")
    )
    if not modules:
        return skipped(f"{case.subject} ships no Python module")
    if elsewhere:
        cause = (
            "a file or folder of that name comes first on sys.path (PYTHONPATH, a .pth file, "
            "an editable install)"
        )
        fix = "rename it, unset PYTHONPATH, or make the environment again from the lock"
        return fails(
            f"{case.subject} is imported from {format_list(elsewhere)}, which is not where "
            "it is installed",
            None,
            elsewhere,
            cause,
            fix,
        )
    if live:
        cause = (
            "files of another version were copied over this one's, or an installation was "
            "interrupted"
        )
        told = (
            f"{case.subject} calls itself {live[0]} once it is imported, and {live[1]} in its "
            "metadata"
        )
        return warns(
            told, live[1], live[0], cause, "look at P07; make the environment again from the lock"
        )
    return passes(f"import {', '.join(modules)}", "no exception", "no exception")


def _libraries(case: JudgeInput) -> Judgement:
    outside, openmp = case.seen["libraries.outside"], case.seen["libraries.openmp"]
    if outside is None:
        return skipped("this system does not tell which libraries a process has loaded")
    if outside:
        variables = case.seen["_libraries.variables"]
        cause = (
            f"{' and '.join(variables)} put them before those that the wheels bring"
            if variables
            else "the loader finds them before those of the wheels"
        )
        fix = (
            describe_unset(variables)
            if variables
            else "remove them from the loader's path (ldconfig), or make the environment again "
            "from the lock"
        )
        # The lock promises nothing of what an image puts beside its own Python.
        say = warns if case.expected.shared else fails
        return say(
            f"torch uses libraries from outside the environment: {format_list(outside)}",
            [],
            outside,
            cause,
            fix,
        )
    if not case.seen["_libraries.imported"]:
        return unknown(
            "torch does not import (see T01), and what it has loaded before is from the environment"
        )
    if len(openmp) > 1:
        cause = (
            "two packages bring an OpenMP runtime each: their threads compete, and some pairs "
            "stop the program"
        )
        return warns(
            f"more than one OpenMP runtime is loaded: {format_list(openmp)}",
            1,
            openmp,
            cause,
            "set OMP_NUM_THREADS, or leave one of the packages out",
        )
    count = case.seen["_libraries.count"]
    return passes(
        f"{count} libraries of torch, for cards and for threads, all from the environment",
        "all from the environment",
        f"{count} from the environment",
    )


JUDGES: dict[str, Callable[[JudgeInput], Judgement]] = {
    "P01": _interpreter,
    "P02": _locked_set,
    "P03": _in_the_way,
    "P04": _requirements,
    "P06": _import,
    "P07": _files,
    "P08": _libraries,
}
