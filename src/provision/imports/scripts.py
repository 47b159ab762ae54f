"""Adds what the commands of a setup script install, and notes the commands that do more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from provision.imports.command_packages import add_command
from provision.imports.quoting import quote_text
from provision.imports.shell import ShellCommand, resolve_variables
from provision.imports.tool_content import ToolContent
from provision.source.nodes import TextFile

_TRIVIAL = frozenset(
    (
        *("[", "[[", "test", ":", "true", "false", "set", "cd", "pushd", "popd", "echo", "printf"),
        *("mkdir", "rm", "rmdir", "cp", "mv", "ln", "touch", "chmod", "chown", "cat", "ls", "pwd"),
        *("source", ".", "which", "command", "type", "sleep", "wait", "unset", "alias", "exit"),
        *("ldconfig", "locale-gen", "useradd", "groupadd", "adduser", "usermod", "nvidia-smi"),
        *("pip", "pip3", "uv", "conda", "mamba", "micromamba", "apt", "apt-get"),
    )
)
"""Programs that leave nothing in an environment that a spec could contain. Those of package
managers are the commands that install nothing, such as `apt-get update`.
"""
_ASSIGNMENT = re.compile(r"\w+=")
_MOST_NAMED = 3


def add_script(
    content: ToolContent,
    commands: Iterable[ShellCommand],
    file: TextFile,
    name: str,
    *,
    variables: Mapping[str, str] | None = None,
    is_setup: bool = True,
    has_exports: bool = True,
) -> None:
    """Add the packages and variables of a script.

    Args:
        content: The content that they are added to.
        commands: The commands, with offsets in `file`.
        file: The text that the commands are in.
        name: What the script is called in its file, such as "setup".
        variables: Known values of variables.
        is_setup: False for the program itself, of which only installed packages are of interest.
        has_exports: True if an exported variable is still set when the program runs.
    """
    others = []
    for written in commands:
        command = resolve_variables(written, variables or {})
        if all(_ASSIGNMENT.match(word.text) for word in command.words):
            continue
        program = PurePosixPath(command.words[0].text).name
        if program == "export":
            if has_exports:
                _add_exports(content, command, file)
        elif add_command(content, command, file) is None and program not in _TRIVIAL:
            others.append(command)
    if others and is_setup:
        first = others[0].words
        named = ", ".join(f"`{quote_text(command.text, 40)}`" for command in others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        content.leave(
            file.span(first[0].start, first[-1].end),
            f"commands of {name} were left out: {named}{more}",
            "a spec lists packages, but does not run commands",
            "if your program needs them, run them after `provision apply`",
        )


def _add_exports(content: ToolContent, command: ShellCommand, file: TextFile) -> None:
    for word in command.words[1:]:
        name, equals, value = word.text.partition("=")
        if equals:
            content.add_variable(name, value, file.span(word.start, word.end))
