"""Judges of the project's code and of its command."""

from __future__ import annotations

from ..model import Judgement
from .judgement import JudgeInput, fails, format_list, passes


def _code(given: JudgeInput) -> Judgement:
    code = given.expected.code
    assert code is not None
    observed, changed = given["code.digest"], given["code.changed"]
    if observed == code.digest:
        return passes(f"{given['code.files']} files as declared", code.digest, observed)
    return fails(
        f"files that differ from the declared code: {format_list(changed)}"
        if changed
        else "the files are those of other code",
        code.digest,
        observed,
        "files were edited, added to the list or removed since the code was read",
        "run `provision apply` again, which brings the code as it is now",
    )


def _command(given: JudgeInput) -> Judgement:
    command = given.expected.command
    assert command is not None
    expected = {"exit": command.exit, "files": list(command.files), "stdout": command.stdout}
    if given["command.error"]:
        return fails(
            f"it did not start: {given['command.error']}",
            expected,
            given["command.error"],
            "the program is not in the environment, or is not executable",
            "check verify.command, and that a package of the spec provides the program",
        )
    code, ended_by = given["command.exit"], given["command.signal"]
    missing, matches = given["command.missing"], given["command.matches"]
    observed = {"exit": code if ended_by is None else ended_by, "missing": missing}
    problems = []
    if code != command.exit:
        ending = f"was ended by {ended_by}" if ended_by else f"ended with exit code {code}"
        problems.append(f"it {ending}, not {command.exit}")
    if missing:
        problems.append(f"it did not write {format_list(missing)}")
    if matches is False:
        problems.append(f"its output does not match {command.stdout}")
    if problems:
        last = given["command.tail"].strip().splitlines()[-1:]
        return fails(
            "; ".join([*problems, *(f"its last line: {line[:200]}" for line in last)]),
            expected,
            {**observed, "output": given["command.tail"]},
            "the command fails in this environment, or its expectation is another one",
            "run it with `provision run -- PROGRAM ...`, and pass its output to `provision why`",
        )
    return passes(
        f"it ended with exit code {code} after {given['command.wall_s']:.1f} s", expected, observed
    )


JUDGES = {"V01": _code, "V02": _command}
