"""Judges the files of the installed packages."""

from __future__ import annotations

from ..model import Judgement
from .judgement import JudgeInput, fails, format_list, passes, unknown, warns


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
    ) and not given.expected.shared:
        cause = (
            "put there by hand or by a program"
            if seen["_packages.own"]
            else "put there by hand, by a program, or brought by the image"
        )
        return warns(
            f"{_as_listed(given)}; no package lists {format_list(stray)}",
            [],
            stray,
            cause,
            "remove what you do not know from site-packages",
        )
    return None
