"""Reads the arguments of `pip install` in a shell command, and lines of requirements in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from provision.diagnostics import Span
from provision.imports import requirement_lines
from provision.imports.pip_options import OPTIONS
from provision.imports.quoting import quote_text
from provision.imports.shell import ShellWord, split_commands
from provision.imports.tool_content import ToolContent

_MAIN_INDEX_OPTIONS = frozenset(("-i", "--index-url", "--default-index"))
"""Options that replace the default index, so that all packages of the command come from there."""
_INDEX_OPTIONS = _MAIN_INDEX_OPTIONS | {"--extra-index-url", "--index", "-f", "--find-links"}


def read_pip_arguments(
    words: Sequence[ShellWord], span_of: Callable[[ShellWord], Span], content: ToolContent
) -> None:
    """Add what the arguments of `pip install` name to the content of a file."""
    arguments: list[tuple[str, Span]] = []
    for word in words:
        span = span_of(word)
        is_value = bool(arguments) and _expects_value(arguments[-1][0])
        if not content.is_known(word, span):
            if is_value:
                arguments.pop()
        elif is_value or not _is_left_out(word, span, content):
            arguments.append((word.text, span))
    origin = _take_only_index(arguments, content)
    for reference in requirement_lines.read_pip_arguments(content, arguments, origin):
        content.add_file_reference(
            reference.name, reference.span, is_constraint=reference.is_constraint
        )


def _take_only_index(
    arguments: list[tuple[str, Span]], content: ToolContent
) -> requirement_lines.RequirementOrigin:
    """Remove the only index of a command, and return the origin of its packages: that index."""
    names = [text.partition("=")[0] for text, _ in arguments]
    indexes = [position for position, name in enumerate(names) if name in _INDEX_OPTIONS]
    if len(indexes) != 1 or names[indexes[0]] not in _MAIN_INDEX_OPTIONS:
        return requirement_lines.MAIN
    position = indexes[0]
    address, span = arguments.pop(position)
    _, equals, value = address.partition("=")
    if not equals and position < len(arguments):
        value, span = arguments.pop(position)
    return requirement_lines.RequirementOrigin(index_name=content.add_index(value, span))


def read_requirement_line(text: str, span: Span, content: ToolContent) -> None:
    """Add a line of a requirements file, without its comment and hashes."""
    text = re.sub(r"(?:^|\s)#.*", "", text).strip()
    if text.startswith("-"):
        words = [word for command in split_commands(text) for word in command.words]
        read_pip_arguments(words, lambda _: span, content)
    else:
        text = re.split(r"\s--?[a-z]", text, maxsplit=1)[0]
        requirement_lines.read_requirement(content, text, span)


def _expects_value(text: str) -> bool:
    """Return whether the value of an option is the next word."""
    if not text.startswith("-") or "=" in text:
        return False
    option = OPTIONS.get(text if text.startswith("--") else f"-{text[-1]}")
    return option is not None and option.takes_value


def _is_left_out(word: ShellWord, span: Span, content: ToolContent) -> bool:
    """Note what is special about a requirement, and return whether it is not one."""
    text = word.text
    if tool := re.fullmatch(r"(pip|uv)(?:[=<>!~].*)?", text):
        content.leave(span, f"{tool[1]} itself was left out", "provision installs with its own uv")
        return True
    if text.endswith(".txt") and not text.startswith("-"):  # -r is missing
        content.add_file_reference(text, span)
        return True
    if word.is_redirected:
        content.leave(
            span,
            f"`{quote_text(text)}` is not in quotes",
            "a shell reads > and < as redirections, so pip never received the version; the spec "
            "contains it",
            f"write it as '{quote_text(text)}'",
        )
    return not text
