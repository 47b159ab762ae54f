"""Adds the packages that shell commands install to the content of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from provision.imports.install_commands import InstallCommand, RefusedCommand, read_command
from provision.imports.pip_arguments import read_pip_arguments
from provision.imports.quoting import quote_text
from provision.imports.shell import ShellCommand, ShellWord
from provision.imports.tool_content import ToolContent, import_hint
from provision.source.nodes import TextFile

_APT_VALUES = frozenset(("-t", "--target-release", "-o", "--option", "-c", "--config-file"))
_CONDA_VALUES = frozenset(("-n", "--name", "-p", "--prefix", "--solver", "--platform", "--subdir"))


def add_command(
    content: ToolContent, command: ShellCommand, file: TextFile, condition: str = ""
) -> InstallCommand | RefusedCommand | None:
    """Add the packages that a shell command installs; None if it is about something else.

    Args:
        content: The content that the packages are added to.
        command: The command, with offsets in `file`.
        file: The text that the command is in.
        condition: When the command runs, in words; "" for always.
    """
    _add_index_variables(content, command, file)
    read = read_command(command)
    if read is None:
        return None
    span = file.span(command.words[0].start, command.words[-1].end)
    if isinstance(read, RefusedCommand):
        fix = import_hint(span, read.file) if read.file else read.help
        message = f"`{quote_text(command.text)}` was left out"
        content.leave(span, message, read.why, fix, missing_file=read.file)
        return read
    condition = " and ".join(filter(None, (condition, command.condition)))
    if condition:
        content.leave(
            span,
            f"{read.program} runs only if {quote_text(condition, 160)}",
            "a spec has no conditions, so it always contains these packages",
            "delete the packages that the environment does not need",
        )
    if read.tool == "apt":
        _add_apt(content, read.arguments, file)
    elif read.tool == "conda":
        _add_conda(content, read.arguments, file)
    else:
        read_pip_arguments(read.arguments, lambda word: file.span(word.start, word.end), content)
    return read


def _add_index_variables(content: ToolContent, command: ShellCommand, file: TextFile) -> None:
    """Add the indexes of `export PIP_INDEX_URL=...` and of assignments before a command."""
    words = command.words[1:] if command.words[0].text == "export" else command.words
    for word in words:
        name, equals, value = word.text.partition("=")
        if not equals or not name.isidentifier():
            break
        if word.is_known:
            content.add_index_variable(name, value, file.span(word.start, word.end))


def _add_apt(content: ToolContent, words: Sequence[ShellWord], file: TextFile) -> None:
    for word in _without_options(words, _APT_VALUES):
        span = file.span(word.start, word.end)
        if not content.is_known(word, span):
            continue
        name = re.split(r"[=/:]", word.text, maxsplit=1)[0]
        if python := re.fullmatch(r"python(3\.\d+)", name):
            content.add_python(python[1], span)
        else:
            content.add_system_package(name, span)


def _add_conda(content: ToolContent, words: Sequence[ShellWord], file: TextFile) -> None:
    channels = _option_words(words, ("-c", "--channel"))
    content.add_channels([(word.text, file.span(word.start, word.end)) for word in channels])
    for word in _option_words(words, ("--file", "-f")):
        content.note_file(word.text, file.span(word.start, word.end))
    taken = {"-c", "--channel", "--file", "-f", *_CONDA_VALUES}
    for word in _without_options(words, frozenset(taken)):
        span = file.span(word.start, word.end)
        if content.is_known(word, span):
            content.add_conda_spec(word.text, span)


def _without_options(words: Sequence[ShellWord], with_values: frozenset[str]) -> list[ShellWord]:
    """Return the words that are neither options nor the values of options."""
    kept = []
    for index, word in enumerate(words):
        is_value = index > 0 and words[index - 1].text in with_values
        if not is_value and not word.text.startswith("-"):
            kept.append(word)
    return kept


def _option_words(words: Sequence[ShellWord], names: tuple[str, ...]) -> list[ShellWord]:
    """Return the values of an option, also of the form --name=value."""
    values = []
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if word.text in names and index + 1 < len(words):
            values.append(words[index + 1])
        elif equals and name in names and name.startswith("--"):
            values.append(word._replace(text=value))
    return values
