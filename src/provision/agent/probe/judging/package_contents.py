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
        return skipped(f"{given.subject} ships no Python module")
    if elsewhere:
        return fails(
            f"{given.subject} is imported from {format_list(elsewhere)}, which is not where "
            "it is installed",
            None,
            elsewhere,
            "a file or folder of that name comes first on sys.path (PYTHONPATH, a .pth file, "
            "an editable install)",
            "rename it, unset PYTHONPATH, or make the environment again from the lock",
        )
    if live:
        return warns(
            f"{given.subject} calls itself {live[0]} once it is imported, and {live[1]} in its "
            "metadata",
            live[1],
            live[0],
            "files of another version were copied over this one's, or an installation was "
            "interrupted",
            "look at P07; make the environment again from the lock",
        )
    return passes(f"import {', '.join(modules)}", "no exception", "no exception")


def judge_libraries(given: JudgeInput) -> Judgement:
    """Return whether torch loads its libraries from the environment."""
    outside, openmp = given["libraries.outside"], given["libraries.openmp"]
    if outside is None:
        return skipped("this system does not tell which libraries a process has loaded")
    if outside:
        variables = given["_libraries.variables"]
        # The lock does not cover what an image installs next to its Python.
        say = warns if given.expected.shared else fails
        return say(
            f"torch uses libraries from outside the environment: {format_list(outside)}",
            [],
            outside,
            f"{' and '.join(variables)} put them before those that the wheels bring"
            if variables
            else "the loader finds them before those of the wheels",
            describe_unset(variables)
            if variables
            else "remove them from the loader's path (ldconfig), or make the environment again "
            "from the lock",
        )
    if not given["_libraries.imported"]:
        return unknown(
            "torch does not import (see T01), and what it has loaded before is from the environment"
        )
    if len(openmp) > 1:
        return warns(
            f"more than one OpenMP runtime is loaded: {format_list(openmp)}",
            1,
            openmp,
            "two packages bring an OpenMP runtime each: their threads compete, and some pairs "
            "stop the program",
            "set OMP_NUM_THREADS, or leave one of the packages out",
        )
    count = given["_libraries.count"]
    return passes(
        f"{count} libraries of torch, for cards and for threads, all from the environment",
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
            flaws.append(f"{count} {files} not as installed: {_first(altered, count)}")
        if started:
            names = format_list(started)
            flaws.append(f"no package lists {names}, which Python reads at each start")
        return fails(
            "; ".join(flaws),
            [],
            [*altered, *started],
            "after the installation, files of the environment were edited, replaced, removed, "
            "added or made unreadable",
            "`provision apply` puts the environment right"
            if given["_packages.own"]
            else "install the locked packages again",
        )
    if without:
        return unknown(f"whether files were changed cannot be told: {format_list(without)}", [])
    return _remarks(given) or passes(
        _as_listed(given), given["packages.files"], given["packages.files"]
    )


def _first(altered: list[str], count: int) -> str:
    """As `listed`, where only the first of `count` are known."""
    return "; ".join(altered[:5]) + (f"; and {count - 5} more" if count > 5 else "")


def _as_listed(given: JudgeInput) -> str:
    files, hashed = given["packages.files"], given["_packages.hashed"]
    if hashed == files:
        return (
            f"{files} files of the locked packages have the size and sha256 that their RECORDs list"
        )
    if not given.get("_packages.since_installed"):
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


def _remarks(given: JudgeInput) -> Judgement | None:
    seen = given.seen
    if unfit := seen["packages.never_fitted"]:
        return warns(
            "files do not fit their RECORD, and did not when they were installed: "
            f"{format_list(unfit)}",
            [],
            unfit,
            "the wheel itself lists other files than it holds, so a later change cannot be "
            "told from that",
            "tell the package's makers",
        )
    if (
        stray := [*seen["packages.stray_pth"], *seen["packages.stray"]]
    ) and not given.expected.shared:
        return warns(
            f"{_as_listed(given)}; no package lists {format_list(stray)}",
            [],
            stray,
            "put there by hand or by a program"
            if seen["_packages.own"]
            else "put there by hand, by a program, or brought by the image",
            "remove what you do not know from site-packages",
        )
    return None
