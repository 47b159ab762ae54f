"""Judges the files of packages, their imports, and the libraries that they load."""

from __future__ import annotations

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


def judge_import(given: JudgeInput) -> Judgement:
    """Return whether a direct package imports, from the environment and in its version."""
    modules, elsewhere, live = (
        given[f"_imported{part}.{given.subject}"] for part in ("", "_elsewhere", "_live")
    )
    if not modules:
        return skipped(f"{given.subject} contains no Python module")
    if elsewhere:
        return fails(
            f"{given.subject} is imported from {format_list(elsewhere)} instead of the folder it "
            "is installed in",
            None,
            elsewhere,
            "a file or folder with the same name comes first on sys.path (PYTHONPATH, a .pth file, "
            "an editable install)",
            "rename that file or folder, unset PYTHONPATH, or recreate the environment from the "
            "lock",
        )
    if live:
        return warns(
            f"{given.subject} reports version {live[0]} when imported, but its metadata lists "
            f"{live[1]}",
            live[1],
            live[0],
            "its files were overwritten with files from a different version, or an installation "
            "was interrupted",
            "see check P07, and recreate the environment from the lock",
        )
    return passes(f"imported {', '.join(modules)}", "no exception", "no exception")


def judge_libraries(given: JudgeInput) -> Judgement:
    """Return whether torch loads its libraries from the environment."""
    outside, openmp = given["libraries.outside"], given["libraries.openmp"]
    if outside is None:
        return skipped("this system does not report which libraries a process has loaded")
    if outside:
        variables = given["_libraries.variables"]
        # The lock does not cover what an image installs next to its Python.
        say = warns if given.expected.shared else fails
        return say(
            f"torch uses libraries from outside the environment: {format_list(outside)}",
            [],
            outside,
            f"{' and '.join(variables)} put these libraries before the libraries in the wheels"
            if variables
            else "the loader finds these libraries before the libraries in the wheels",
            describe_unset(variables)
            if variables
            else (
                "remove them from the loader path (ldconfig), or recreate the environment from "
                "the lock"
            ),
        )
    if not given["_libraries.imported"]:
        return unknown(
            "torch cannot be imported (see T01); the libraries loaded so far "
            "are from the environment"
        )
    if len(openmp) > 1:
        return warns(
            f"more than one OpenMP runtime is loaded: {format_list(openmp)}",
            1,
            openmp,
            "two packages each contain an OpenMP runtime; their threads compete for "
            "cores, and some combinations crash",
            "set OMP_NUM_THREADS, or remove one of the packages",
        )
    count = given["_libraries.count"]
    return passes(
        f"{count} torch, GPU and threading libraries loaded, all from the environment",
        "all from the environment",
        f"{count} from the environment",
    )


def judge_files(given: JudgeInput) -> Judgement:
    """Return whether the files are as installed, and whether anything else is read at starts."""
    altered, without = given["packages.altered"], given["packages.without_record"]
    started = given["packages.stray_pth"] if given["_packages.own"] else []
    if altered or started:
        flaws = []
        if altered:
            count = given["_packages.altered_count"]
            files = "file is" if count == 1 else "files are"
            flaws.append(f"{count} {files} not as installed: {format_list(altered, total=count)}")
        if started:
            names = format_list(started)
            flaws.append(
                f"{names}, which Python runs at each start, does not belong to any package"
            )
        return fails(
            "; ".join(flaws),
            [],
            [*altered, *started],
            "files in the environment were changed, added, removed or made unreadable after the "
            "installation",
            "run `provision apply` to repair the environment"
            if given["_packages.own"]
            else "install the locked packages again",
        )
    if without:
        return unknown(f"cannot check whether files were changed: {format_list(without)}", [])
    return _remarks(given) or passes(
        _as_listed(given), given["packages.files"], given["packages.files"]
    )


def _as_listed(given: JudgeInput) -> str:
    files, hashed = given["packages.files"], given["_packages.hashed"]
    if hashed == files:
        return f"{files} files of the locked packages match the size and sha256 in their RECORDs"
    if not given.get("_packages.since_installed"):
        return f"{files} files of the locked packages match the size in their RECORDs"
    by_hash = f", {hashed} by the sha256 in their RECORDs" if hashed else ""
    return (
        f"{files} files of the locked packages are unchanged since the installation "
        f"({files - hashed} by size and modification time{by_hash})"
    )


def _remarks(given: JudgeInput) -> Judgement | None:
    seen = given.seen
    if unfit := seen["packages.never_fitted"]:
        return warns(
            "files already differed from their RECORD when they were installed: "
            f"{format_list(unfit)}",
            [],
            unfit,
            "the wheel's RECORD does not match the wheel's files, so later changes to them cannot "
            "be detected",
            "report it to the package's maintainers",
        )
    if (
        stray := [*seen["packages.stray_pth"], *seen["packages.stray"]]
    ) and not given.expected.shared:
        return warns(
            f"{_as_listed(given)}; files that do not belong to any package: {format_list(stray)}",
            [],
            stray,
            "added manually or by a program"
            if seen["_packages.own"]
            else "added manually or by a program, or part of the image",
            "in site-packages, delete the files that you do not recognize",
        )
    return None
