"""Judges of the project's code and of its command."""

from __future__ import annotations

import re
import shlex

from ..model import Judgement
from .judgement import JudgeInput, fails, format_list, passes

_PROGRESS_BAR = re.compile(r"\d%\|.*\||\b\d+it \[[\d:]+|(?:it/s|s/it)\]")
"""Forms of tqdm's bar."""


def _code(given: JudgeInput) -> Judgement:
    code = given.expected.code
    assert code is not None
    observed, changed = given["code.digest"], given["code.changed"]
    if observed == code.digest:
        return passes(
            f"all files ({given['code.files']}) match the declared code", code.digest, observed
        )
    return fails(
        f"these files differ from the declared code: {format_list(changed)}"
        if changed
        else "the files belong to different code",
        code.digest,
        observed,
        "files were changed, added or removed after provision read the code",
        "run `provision apply` again to copy the current code",
    )


def _command(given: JudgeInput) -> Judgement:
    command = given.expected.command
    assert command is not None
    expected = {"exit": command.exit, "files": list(command.files), "stdout": command.stdout}
    if given["command.error"]:
        return fails(
            f"the command did not start: {given['command.error']}",
            expected,
            given["command.error"],
            "the program is not in the environment, or is not executable",
            "check `verify.command`, and check that a package in the spec provides the program",
        )
    code, ended_by = given["command.exit"], given["command.signal"]
    missing, matches = given["command.missing"], given["command.matches"]
    observed = {"exit": code if ended_by is None else ended_by, "missing": missing}
    problems = []
    if code != command.exit:
        ending = f"was ended by {ended_by}" if ended_by else f"ended with exit code {code}"
        problems.append(f"the command {ending}; expected exit code {command.exit}")
    if missing:
        problems.append(f"the command did not write {format_list(missing)}")
    if matches is False:
        problems.append(f"its output does not match {command.stdout}")
    if problems:
        lines = given["command.tail"].strip().splitlines()
        how = "run the command in this environment"
        if command.run:
            how = f"run the command with `{command.run} -- {shlex.join(command.argv)}`"
        last = [line for line in lines if line.strip() and not _PROGRESS_BAR.search(line)][-1:]
        return fails(
            "; ".join([*problems, *(f"the last line: {line[:200]}" for line in last)]),
            expected,
            {**observed, "output": given["command.tail"]},
            "the command fails in this environment, or `verify.command` expects a different result",
            f"{how}, and pass the output to `provision why`",
        )
    return passes(
        f"the command ended with exit code {code} after {given['command.wall_s']:.1f} s",
        expected,
        observed,
    )


JUDGES = {"V01": _code, "V02": _command}
