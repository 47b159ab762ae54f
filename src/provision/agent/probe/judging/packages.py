"""Judges the interpreter, the installed packages and their files against the lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...core.versions import UnreadableVersion, is_same_version, read_version
from ..expectations import Expectations
from ..model import JsonObject, Judgement
from .judgement import JudgeInput, fails, format_list, passes, unknown, warns
from .package_contents import judge_files, judge_import, judge_libraries

_INSTALL_AGAIN = "recreate the environment from the lock"
_OTHER_IMAGE = (
    "the image was not built from this lock",
    "build the image from the lock, and use its digest",
)


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
            f"Python {given['python.version']} is running, but the lock is for {required}",
            expected,
            observed,
            "the environment was created with a different interpreter",
            f"recreate the environment with Python {required}",
        )
    if not given["python.prefix_matches"] and given["_python.executable"].startswith(
        given.expected.python_prefix.rstrip("/") + "/"
    ):
        return fails(
            f"{given['_python.executable']} uses the packages in {given['_python.prefix']} "
            "instead of those in its own environment",
            expected,
            observed,
            "the environment's pyvenv.cfg is missing or damaged, or PYTHONHOME is set",
            "unset PYTHONHOME, or recreate the environment from the lock",
        )
    if not given["python.prefix_matches"]:
        return fails(
            f"{given['_python.executable']} is running instead of the environment's Python",
            expected,
            observed,
            "another environment is active, or the wrong Jupyter kernel is selected",
            f"run {given.expected.python_prefix}/bin/python, or select this environment's kernel",
        )
    return _as_it_was_made(given) or passes(f"Python {observed}", expected, observed)


def _as_it_was_made(given: JudgeInput) -> Judgement | None:
    live, made = given["python.version"], given.get("python.made_with")
    if given.get("python.implementation", "cpython") != "cpython":
        return fails(
            f"{given['python.implementation']} is running, but the lock is for CPython",
            "cpython",
            given["python.implementation"],
            "the environment was created with a different Python implementation; wheels with "
            "compiled code are built for CPython",
            "recreate the environment with CPython",
        )
    if made is None or re.sub(r"[^\d.].*", "", live) == made:
        return None
    return warns(
        f"Python {live} is running in an environment that was created with Python {made}",
        made,
        live,
        "the base Python of the environment was upgraded or replaced after the environment was "
        "created",
        _INSTALL_AGAIN,
    )


def _locked_set(given: JudgeInput) -> Judgement:
    observed, provided = given["_packages.installed"], given.get("_packages.brought", {})
    damaged, locked = given.get("_packages.damaged", {}), len(given.expected.packages)
    wrong = version_differences(given.expected.packages, observed)
    summary, origin = f"{len(wrong)} of {locked} locked packages differ", "locked"
    matching = locked - len(wrong)
    of_conda = packages_of_conda(given.expected, provided)
    if not wrong:
        wrong = version_differences(of_conda, observed)
        summary, origin = f"{len(wrong)} conda packages differ", "locked conda file has"
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
            *(_OTHER_IMAGE if given.expected.is_baked else _why_versions_differ(wrong, damaged)),
        )
    note = ""
    if provided is None:
        note = "; other conda packages were not recorded and are not compared"
    elif of_conda:
        note = f"; {len(of_conda)} more conda packages match their locked files"
    return passes(
        f"all {locked} locked packages are installed at their locked versions{note}", locked, locked
    )


def _absent(name: str, damaged: Mapping[str, str]) -> str:
    return (
        f"has no readable METADATA (in {damaged[name]})" if name in damaged else "is not installed"
    )


def _why_versions_differ(wrong: list[JsonObject], damaged: Mapping[str, str]) -> tuple[str, str]:
    if all(package["name"] in damaged for package in wrong):
        return (
            (
                "an installation was interrupted, or the file was deleted or cannot be read by "
                "this user"
            ),
            _INSTALL_AGAIN,
        )
    if any(
        package["observed"] and _same_public(package["expected"], package["observed"])
        for package in wrong
    ):
        return (
            "the same release came from a different index: its build (the part after +) differs",
            "recreate the environment from the lock, without an extra index",
        )
    return (
        (
            "packages were installed or removed after the environment was created, or another "
            "environment is running"
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
        f"no locked package is shadowed; the image has {given['_packages.others']} other packages",
        "none",
        "none",
    )


def _preferred_elsewhere(given: JudgeInput) -> list[_Row]:
    return [
        (
            fails,
            given["packages.shadowed"],
            "modules outside the environment are imported instead of the installed ones",
            "PYTHONPATH or the user's site-packages comes first on sys.path",
            "unset PYTHONPATH, set PYTHONNOUSERSITE=1, or rename the files",
        ),
        (
            fails,
            given["packages.elsewhere"],
            "locked packages are installed outside the environment",
            "they are user installs or editable installs, or are in a different environment",
            _INSTALL_AGAIN,
        ),
    ]


def _additional_in_image(given: JudgeInput) -> list[_Row]:
    return [
        (
            warns,
            given["packages.duplicates"],
            "locked packages are installed more than once",
            "the image contains a package in two folders; the first on sys.path is used",
            "no action is needed as long as the first one is the locked version",
        )
    ]


def _additional_in_environment(given: JudgeInput) -> list[_Row]:
    return [
        (
            warns,
            given.get("packages.hidden_by_working_folder"),
            (
                "a script in the working folder would import files from that folder instead of "
                "installed modules"
            ),
            "Python first searches the folder of the script or notebook it runs",
            "rename these files or folders",
        ),
        (
            warns,
            given["packages.duplicates"],
            "installed more than once",
            "an installation was interrupted, or two installers changed the same environment",
            _INSTALL_AGAIN,
        ),
        (
            warns,
            given["packages.unlocked"],
            "installed but not locked",
            "installed manually, or part of the image",
            "add them to `packages` in the spec and lock again, or uninstall them",
        ),
    ]


def _requirements(given: JudgeInput) -> Judgement:
    unmet, unread = given["packages.unmet"], given["packages.unread"]
    if unmet:
        return fails(
            format_list(unmet),
            [],
            unmet,
            "packages were changed after they were resolved, or a requirement was overridden",
            "lock again so that all packages are resolved together, then recreate the environment",
        )
    if unread:
        return unknown(f"some requirements could not be read: {format_list(unread)}", [])
    if given.expected.shared:
        others = given["packages.unmet_unlocked"]
        return passes(
            "the requirements of every locked package are "
            f"met{f'; unmet in the image: {format_list(others, 2)}' if others else ''}",
            "all met",
            "all met",
        )
    return passes("the requirements of every installed package are met", "all met", "all met")


JUDGES = {
    "P01": _interpreter,
    "P02": _locked_set,
    "P03": _in_the_way,
    "P04": _requirements,
    "P06": judge_import,
    "P07": judge_files,
    "P08": judge_libraries,
}
