"""Reads files of conda: environment.yml, exported environments and lists of packages."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from provision.diagnostics import Span
from provision.imports.model import SourceText
from provision.imports.pip_arguments import read_requirement_line
from provision.imports.quoting import quote_text
from provision.imports.tool_content import ToolContent
from provision.imports.yaml_content import (
    find_value,
    key_span,
    list_entries,
    list_items,
    read_text,
    read_yaml,
)
from provision.sanitize import redact
from provision.source.nodes import LocatedValue, to_text_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.imports.model import ImportContext, ImportedFile

_EXPORTED = re.compile(r"[\w.-]+=[^=<>|\s]+(?:=[^=\s]+)?")
_WITH_BUILD = re.compile(r"[\w.-]+=[^=<>|\s]+=[^=\s]+")
_SELECTOR_COMMENT = re.compile(r"[ \t]+#[ \t]*\[([^\]\r\n]+)\]")
_SELECTOR_KEY = re.compile(r"sel\(([^)]+)\)")
_OTHER_PLATFORM = re.compile(r"(?:win|osx|arm|aarch|ppc|s390|bsd|emscripten|wasi)\w*|macos")
_KNOWN_KEYS = frozenset(("name", "channels", "dependencies", "variables", "prefix"))
_FILE_NAME = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
_IDENTIFIER = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def read_environment(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the content of an environment.yml, written by a person or by `conda env export`."""
    documents, content = read_yaml(path, text, "conda environment")
    for root in documents:
        _read_environment(root, content)
    return content.finish(path.parent, context)


def _read_environment(root: LocatedValue, content: ToolContent) -> None:
    dependencies = list_items(find_value(root, "dependencies"))
    is_exported = _is_exported(root, dependencies)
    content.is_resolved = content.is_resolved or is_exported
    name = find_value(root, "name")
    add_name(read_text(name), name, content)
    channels = list_items(find_value(root, "channels"))
    content.add_channels([(read_text(part) or "", part.at.span) for part in channels])
    for dependency in dependencies:
        _read_dependency(dependency, content, is_exported=is_exported)
    for key, value in list_entries(find_value(root, "variables")):
        content.add_variable(key, read_text(value) or "", key_span(value))
    for key, value in list_entries(root):
        # `prefix` is the folder of the exported environment; conda itself ignores it.
        if key not in _KNOWN_KEYS:
            content.leave(key_span(value), f"{quote_text(key)} was left out")


def _is_exported(root: LocatedValue, dependencies: Sequence[LocatedValue]) -> bool:
    """Return whether conda wrote the list, so that every version in it is exact."""
    specs = [text for part in dependencies if (text := read_text(part)) is not None]
    if any(_WITH_BUILD.fullmatch(spec) for spec in specs):
        return True
    has_prefix = find_value(root, "prefix") is not None
    return has_prefix and bool(specs) and all(_EXPORTED.fullmatch(spec) for spec in specs)


def add_name(name: str | None, value: LocatedValue | None, content: ToolContent) -> None:
    """Add the name of an environment in the form that a spec takes."""
    if name is None or value is None:
        return
    short = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].rstrip("-")
    if _IDENTIFIER.fullmatch(short):
        content.set(("name",), short, value.at.span)
    else:
        content.leave(
            value.at.span,
            f"the name {quote_text(name)} was left out",
            "a name must consist of lowercase letters, digits and hyphens",
        )


def _read_dependency(value: LocatedValue, content: ToolContent, *, is_exported: bool) -> None:
    text = read_text(value)
    if text is None:
        for key, inner in list_entries(value):
            _read_nested(key, inner, content, is_exported=is_exported)
        return
    file, end = value.node.text, value.at.end
    selector = _SELECTOR_COMMENT.match(file.content, end, file.end_of_line(end))
    if selector is None or _check_selector(selector[1], text, value.at.span, content):
        _add_dependency(text, value.at.span, content, is_exported=is_exported)


def _read_nested(key: str, value: LocatedValue, content: ToolContent, *, is_exported: bool) -> None:
    """Read the list of pip, or a package with a selector such as `sel(linux): gxx`."""
    selector = _SELECTOR_KEY.fullmatch(key)
    if key == "pip":
        before = len(content.packages)
        for line in list_items(value):
            read_requirement_line(read_text(line) or "", line.at.span, content)
        if is_exported:
            _mark_exact(content, before)
    elif selector is not None:
        for part in list_items(value):
            text = read_text(part) or ""
            if _check_selector(selector[1], text, part.at.span, content):
                _add_dependency(text, part.at.span, content, is_exported=False)
    else:
        content.leave(
            key_span(value),
            f"the dependencies under {quote_text(key)} were left out",
            "conda supports only `pip` there",
        )


def _mark_exact(content: ToolContent, start: int) -> None:
    """Mark the packages from an index on whose version is exact."""
    content.packages[start:] = [
        package._replace(is_exact="==" in package.requirement)
        for package in content.packages[start:]
    ]


def _add_dependency(text: str, span: Span, content: ToolContent, *, is_exported: bool) -> None:
    if text.startswith("__"):
        content.leave(
            span,
            f"the virtual package {quote_text(text)} was left out",
            "it describes the machine",
            "set the machine's requirements under `requires`",
        )
    elif not re.fullmatch(r"(?:[\w-]+::)?pip(?:[=<>\s].*)?", text):  # there for the list of pip
        content.add_conda_spec(text, span, is_exported=is_exported)


def _check_selector(selector: str, package: str, span: Span, content: ToolContent) -> bool:
    """Return whether a selector is true on Linux, and add a leftover if it is not."""
    if _is_for_linux(selector):
        return True
    content.leave(
        span,
        f"{quote_text(package)} was left out: its selector is [{quote_text(selector)}]",
        "a spec without `platforms` is for Linux",
        "if another platform needs it, add it with a marker such as sys_platform == 'win32'",
    )
    return False


def _is_for_linux(selector: str) -> bool:
    """Evaluate a selector such as `not win` for 64-bit Linux; True for one that is not known."""
    names = re.sub(r"[A-Za-z]+[-_]?\d*", lambda match: match[0].replace("-", "_"), selector)
    try:
        tree = ast.parse(names.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True

    def evaluate(node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return not _OTHER_PLATFORM.fullmatch(name)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not evaluate(operand)
            case ast.BoolOp(op=ast.And(), values=values):
                return all(evaluate(value) for value in values)
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(evaluate(value) for value in values)
        return True

    return evaluate(tree)


def read_package_list(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the packages of `conda list`, with --explicit, with --export or as a table."""
    name = str(path)
    file = to_text_file(name, text)
    content = ToolContent("conda package list", (SourceText(name, text, name),))
    content.is_resolved = True
    for start in file.starts:
        end = file.end_of_line(start)
        line = text[start:end].strip()
        span = file.span(start, start + len(text[start:end].rstrip()))
        if line.startswith(("http://", "https://", "file://", "/")):
            _read_address(line, span, content)
        elif line and not line.startswith(("#", "@EXPLICIT")):
            _read_row(line, span, content)
        elif match := re.match(r"# platform: (\S+)", line):
            _check_platform(match[1], span, content)
    return content.finish()


def _read_address(address: str, span: Span, content: ToolContent) -> None:
    """Read the address of a package file."""
    try:
        parts = urlsplit(address).path.split("/")
    except ValueError:
        parts = []
    match = _FILE_NAME.fullmatch(parts[-1]) if len(parts) > 2 else None
    if match is None:
        content.leave(span, f"{quote_text(address)} is not the URL of a conda package")
        return
    channel, subdir = parts[-3], parts[-2]
    if subdir not in ("linux-64", "noarch"):
        _check_platform(subdir, span, content)
    _add_exact(match["name"], match["version"], match["build"], channel, span, content)


def _check_platform(platform: str, span: Span, content: ToolContent) -> None:
    message = f"the packages are for {quote_text(platform)}, but the targets of a spec run linux-64"
    if platform not in ("linux-64", "noarch") and all(
        leftover.message != message for leftover in content.leftovers
    ):
        content.leave(
            span,
            message,
            "builds for other platforms may have different versions",
            "check that the versions exist for linux-64",
        )


def _read_row(line: str, span: Span, content: ToolContent) -> None:
    """Read `name=version=build`, or a row of the table: name, version, build and channel."""
    fields = line.split("=") if "=" in line else line.split()
    if len(fields) not in (3, 4) or not re.match(r"\d|pypi", fields[1]):
        content.leave(span, f"{quote_text(line)} is not a line from `conda list`")
        return
    name, version, build = fields[:3]
    channel = fields[3] if len(fields) > 3 else ""
    if build == "pypi_0":
        before = len(content.packages)
        read_requirement_line(f"{name}=={version}", span, content)
        _mark_exact(content, before)
    else:
        _add_exact(name, version, build, channel, span, content)


def _add_exact(
    name: str, version: str, build: str, channel: str, span: Span, content: ToolContent
) -> None:
    if name == "python":
        content.add_python(version, span)
        return
    package = content.add_conda_spec(f"{name}={version}={build}", span, is_exported=True)
    if package is not None and channel:
        content.packages[-1] = package._replace(index=redact(channel))
