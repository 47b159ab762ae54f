"""Reads YAML files of other tools with positions, and the shell commands in their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision.diagnostics import Severity, Span
from provision.errors import SourceError
from provision.imports.model import SourceText
from provision.imports.shell import ShellCommand, split_commands
from provision.imports.tool_content import ToolContent
from provision.source.nodes import LocatedValue, Scalar, Sequence, build_value_tree, to_text_file
from provision.source.yaml_parser import compose

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_yaml(
    path: Path, text: str, format_name: str
) -> tuple[tuple[LocatedValue, ...], ToolContent]:
    """Return the documents of a YAML file and the content to fill.

    Problems that do not prevent reading, such as a tag or a key that is there twice, are leftovers.

    Raises:
        SourceError: the text is not YAML, exceeds a limit of the reader, or is not a mapping.
    """
    name = str(path)
    file = to_text_file(name, text)
    content = ToolContent(format_name, (SourceText(name, text, name),))
    documents = []
    for document in compose(file):
        problems = [part for part in document.diagnostics if part.severity is Severity.ERROR]
        if document.root is None:
            problem = document.diagnostics[-1]
            where = problem.where
            place = name
            if isinstance(where, Span):
                place = f"{where.file}:{where.start.line}:{where.start.column}"
            raise SourceError(
                f"{place}: {problem.message}",
                why=problem.why or f"the file was read as {format_name}",
                hint="" if "provision init" in problem.help else problem.help,
            )
        for problem in problems:
            if isinstance(problem.where, Span):
                content.leave(problem.where, problem.message)
        documents.append(build_value_tree(document.root))
    return tuple(documents), content


def find_value(value: LocatedValue, *route: str) -> LocatedValue | None:
    """Return the value at a route, None if there is none."""
    return value.find(route)


def read_text(value: LocatedValue | None) -> str | None:
    """Return a scalar as it is written, without quotes; None for null or a collection."""
    if value is None or not isinstance(value.node, Scalar) or value.node.resolved is None:
        return None
    return value.node.value


def list_items(value: LocatedValue | None) -> tuple[LocatedValue, ...]:
    """Return the items of a list, or a scalar as the only item; () for null or a mapping."""
    if value is None:
        return ()
    if isinstance(value.node, Sequence):
        return tuple(value.children.values())
    return (value,) if read_text(value) is not None else ()


def list_entries(value: LocatedValue | None) -> Iterator[tuple[str, LocatedValue]]:
    """Yield the keys and values of a mapping, nothing for another value."""
    if value is None or isinstance(value.node, Scalar | Sequence):
        return
    for key, child in value.children.items():
        yield str(key), child


def read_commands(value: LocatedValue | None) -> tuple[ShellCommand, ...]:
    """Return the shell commands of a scalar, with offsets in the file."""
    if value is None or not isinstance(value.node, Scalar):
        return ()
    node = value.node
    content, start = node.text.content, node.start
    if node.style == "|":
        return split_commands(content, node.text.end_of_line(start), node.end)
    if node.style in ("'", '"'):
        start += 1
    if content[start : start + len(node.value)] == node.value:
        return split_commands(content, start, start + len(node.value))
    # The words of a folded scalar, or of one with escapes, have the position of the scalar.
    return tuple(
        command._replace(
            words=tuple(word._replace(start=node.start, end=node.end) for word in command.words)
        )
        for command in split_commands(node.value)
    )


def key_span(value: LocatedValue) -> Span:
    """Return the span of the key of a value, of the value itself in a list."""
    return (value.key or value.at).span
