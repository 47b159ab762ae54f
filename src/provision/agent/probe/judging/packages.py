"""Judges the interpreter, the installed packages and their files against the lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...core.versions import UnreadableVersion, is_same_version, read_version
from ..expectations import Expectations
from ..model import JsonObject, Judgement
from .judgement import JudgeInput, fails, format_list, passes, unknown, warns
from .package_contents import judge_files, judge_import, judge_libraries

_INSTALL_AGAIN = "make the environment again from the lock"


def version_differences(
    expected: Mapping[str, str], installed: Mapping[str, str]
) -> list[JsonObject]:
    """Return packages in another version; `observed` is None if one is not installed."""
    return [
        {"name": name, "expected": version, "observed": installed.get(name)}
        for name, version in sorted(expected.items())
        if name not in installed or not is_same_version(version, installed[name])
    ]


def packages_of_conda(expected: Expectations, provided: Mapping[str, str] | None) -> dict[str, str]:
    """Return the packages of locked conda files that are not locked themselves."""
    provided = provided or {}
    return {name: provided[name] for name in provided.keys() - expected.packages.keys()}


def _interpreter(given: JudgeInput) -> Judgement:
    minor, required = given["python.minor"], given.expected.python_version
    expected, observed = (
        f"{required} under {given.expected.python_prefix}",
        f"{given['python.version']} under {given['_python.prefix']}",
    )
    if minor != ".".join(required.split(".")[:2]):
        return fails(
            f"Python {given['python.version']} runs, the lock is for {required}",
            expected,
            observed,
            "the environment was made with another interpreter",
            f"make the environment again with Python {required}",
        )
    if not given["python.prefix_matches"] and given["_python.executable"].startswith(
        given.expected.python_prefix.rstrip("/") + "/"
    ):
        return fails(
            f"{given['_python.executable']} runs and takes its packages from "
            f"{given['_python.prefix']}, not from its own environment",
            expected,
            observed,
            "the environment's pyvenv.cfg is missing or damaged, or PYTHONHOME is set",
            "unset PYTHONHOME; else make the environment again from the lock",
        )
    if not given["python.prefix_matches"]:
        return fails(
            f"{given['_python.executable']} runs, which is not the environment's Python",
            expected,
            observed,
            "another environment is active, or a wrong Jupyter kernel is chosen",
            f"run {given.expected.python_prefix}/bin/python, or choose this environment's kernel",
        )
    return _as_it_was_made(given) or passes(f"Python {observed}", expected, observed)


def _as_it_was_made(given: JudgeInput) -> Judgement | None:
    live, made = given["python.version"], given.get("python.made_with")
    if given.get("python.implementation", "cpython") != "cpython":
        return fails(
            f"{given['python.implementation']} runs, the lock is for CPython",
            "cpython",
            given["python.implementation"],
            "the environment was made with another kind of Python; wheels with code of their "
            "own are for CPython",
            "use CPython",
        )
    if made is None or re.sub(r"[^\d.].*", "", live) == made:
        return None
    return warns(
        f"Python {live} runs in an environment that was made with {made}",
        made,
        live,
        "the Python beneath the environment was upgraded or replaced after the environment was "
        "made",
        _INSTALL_AGAIN,
    )


def _locked_set(given: JudgeInput) -> Judgement:
    observed, provided = given["_packages.installed"], given.get("_packages.brought", {})
    damaged, locked = given.get("_packages.damaged", {}), len(given.expected.packages)
    wrong = version_differences(given.expected.packages, observed)
    summary, origin = f"{len(wrong)} of {locked} locked packages differ", "lock says"
    matching = locked - len(wrong)
    of_conda = packages_of_conda(given.expected, provided)
    if not wrong:
        wrong = version_differences(of_conda, observed)
        summary, origin = f"{len(wrong)} packages of conda differ", "conda's locked file brought"
    if wrong:
        message = [
            f"{package['name']} {package['observed'] or _absent(package['name'], damaged)}, "
            f"{origin} {package['expected']}"
            for package in wrong
        ]
        return fails(
            f"{summary}: {format_list(message)}",
            locked,
            matching,
            *_why_versions_differ(wrong, damaged),
        )
    note = ""
    if provided is None:
        note = "; what conda brought besides was not noted, and is not compared"
    elif of_conda:
        note = f"; {len(of_conda)} more of conda have the version of their locked file"
    return passes(f"all {locked} locked packages have their locked version{note}", locked, locked)


def _absent(name: str, damaged: Mapping[str, str]) -> str:
    return (
        f"is there without a METADATA that can be read (in {damaged[name]})"
        if name in damaged
        else "is not installed"
    )


def _why_versions_differ(wrong: list[JsonObject], damaged: Mapping[str, str]) -> tuple[str, str]:
    if all(package["name"] in damaged for package in wrong):
        return (
            (
                "an installation was interrupted, or the file was removed or may not be read "
                "by this user"
            ),
            _INSTALL_AGAIN,
        )
    if any(
        package["observed"] and _same_public(package["expected"], package["observed"])
        for package in wrong
    ):
        return (
            "the same release came from another index: its build (the part after +) differs",
            "make the environment again from the lock; do not add an extra index",
        )
    return (
        (
            "something was installed or removed after the environment was made, or another "
            "environment runs"
        ),
        _INSTALL_AGAIN,
    )


def _same_public(version: str, other: str) -> bool:
    try:
        return read_version(version).public_key == read_version(other).public_key
    except UnreadableVersion:
        return False


_Row = tuple[Callable[..., Judgement], list[str], str, str, str]
"""How names are judged, the names, and message, cause and fix."""


def _in_the_way(given: JudgeInput) -> Judgement:
    rows = _preferred_elsewhere(given)
    if given.expected.shared:
        rows += _additional_in_image(given)
    else:
        rows += _additional_in_environment(given)
    for judge, names, message, cause, fix in rows:
        if names:
            return judge(f"{message}: {format_list(names)}", [], names, cause, fix)
    if not given.expected.shared:
        return passes("nothing outside the lock is installed or imported", "none", "none")
    return passes(
        f"nothing is imported instead of a locked package; {given['_packages.others']} other "
        "packages of the image stay as they are",
        "none",
        "none",
    )


def _preferred_elsewhere(given: JudgeInput) -> list[_Row]:
    return [
        (
            fails,
            given["packages.shadowed"],
            "modules outside the environment are imported instead of its own",
            "PYTHONPATH or the user's site-packages comes first on sys.path",
            "unset PYTHONPATH, set PYTHONNOUSERSITE=1, or rename the files",
        ),
        (
            fails,
            given["packages.elsewhere"],
            "locked packages are not in the environment",
            "they are installed for the user, in another environment, or editable",
            _INSTALL_AGAIN,
        ),
    ]


def _additional_in_image(given: JudgeInput) -> list[_Row]:
    return [
        (
            warns,
            given["packages.duplicates"],
            "locked packages are installed more than once",
            "the image brings a package in two places; the first on sys.path is used",
            "nothing, while the first is the locked one",
        )
    ]


def _additional_in_environment(given: JudgeInput) -> list[_Row]:
    return [
        (
            warns,
            given.get("packages.hidden_by_working_folder"),
            "a script in the working folder imports these from there instead of the installed ones",
            "Python looks first in the folder of the script or notebook that it runs",
            "rename the files or folders of these names",
        ),
        (
            warns,
            given["packages.duplicates"],
            "installed more than once",
            "an install was interrupted, or two installers wrote into one environment",
            _INSTALL_AGAIN,
        ),
        (
            warns,
            given["packages.unlocked"],
            "installed but not locked",
            "installed by hand, or brought by the image",
            "add them to packages: and lock again, or remove them",
        ),
    ]


def _requirements(given: JudgeInput) -> Judgement:
    unmet, unread = given["packages.unmet"], given["packages.unread"]
    if unmet:
        return fails(
            format_list(unmet),
            [],
            unmet,
            "the set was changed after it was resolved, or a requirement was overridden",
            "lock again so that one resolver chooses the whole set, then make the "
            "environment again",
        )
    if unread:
        return unknown(f"requirements that could not be read: {format_list(unread)}", [])
    if given.expected.shared:
        others = given["packages.unmet_unlocked"]
        return passes(
            "every locked package has what it "
            f"requires{f'; of the image: {format_list(others, 2)}' if others else ''}",
            "all met",
            "all met",
        )
    return passes("every installed package has what it requires", "all met", "all met")


JUDGES = {
    "P01": _interpreter,
    "P02": _locked_set,
    "P03": _in_the_way,
    "P04": _requirements,
    "P06": judge_import,
    "P07": judge_files,
    "P08": judge_libraries,
}
