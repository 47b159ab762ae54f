"""Reads the tables of Poetry in pyproject.toml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.utils import canonicalize_name

from provision.diagnostics import Span
from provision.imports.content import Content
from provision.imports.quoting import quote_text
from provision.imports.requirement_lines import (
    RequirementOrigin,
    parse_requirement,
    read_location,
    read_requirement,
)
from provision.imports.toml_text import TomlText, as_table, as_tables, as_text, as_texts
from provision.imports.tool_sources import find_location
from provision.imports.version_ranges import add_python, convert_range

_POETRY = ("tool", "poetry")


def add_poetry(toml: TomlText, content: Content) -> None:
    """Add the dependencies, groups and sources of Poetry."""
    poetry = toml.table(*_POETRY)
    if not poetry:
        return
    indexes: dict[str, str | None] = {}
    for row in as_tables(poetry.get("source")):
        name, url = as_text(row.get("name")), as_text(row.get("url"))
        if url:
            span = toml.string((*_POETRY, "source"), "url", url)
            indexes[name] = content.add_index(url, span, name)
    optional = {
        canonicalize_name(package): extra
        for extra, packages in as_table(poetry.get("extras")).items()
        for package in as_texts(packages)
    }
    tables: list[tuple[tuple[str, ...], str]] = [
        ((*_POETRY, "dependencies"), ""),
        ((*_POETRY, "dev-dependencies"), "dev"),
    ]
    tables.extend(
        ((*_POETRY, "group", group, "dependencies"), group)
        for group in as_table(poetry.get("group"))
    )
    for table, environment in tables:
        for name, value in toml.table(*table).items():
            span = toml.key(table, name)
            rows = as_tables(value) if isinstance(value, list) else [_to_row(value)]
            if name == "python":
                _add_python(content, as_text(rows[0].get("version")) if rows else "", span)
                continue
            for row in rows:
                group = environment
                if row.get("optional"):
                    group = optional.get(canonicalize_name(name), environment)
                _add_dependency(content, name, row, span, group, indexes)


def _to_row(value: Any) -> Mapping[str, Any]:
    return {"version": value} if isinstance(value, str) else as_table(value)


def _add_python(content: Content, text: str, span: Span) -> None:
    versions = convert_range(text)
    add_python(content, text if versions is None else versions, span)


def _add_dependency(
    content: Content,
    name: str,
    row: Mapping[str, Any],
    span: Span,
    environment: str,
    indexes: Mapping[str, str | None],
) -> None:
    origin = RequirementOrigin(environment=environment)
    located = parse_requirement(f"{name}{_extras(row)}{_marker(row)}")
    if located is not None and (location := find_location(row, located)) is not None:
        read_location(content, location, span, origin)
        return
    written = as_text(row.get("version")) or "*"
    versions = convert_range(written)
    if versions is None:
        content.leave(
            span,
            f"the version {quote_text(written)} of {quote_text(name)} is not imported",
            "it cannot be expressed with version specifiers",
            "write it in a form such as >=1.2,<2",
        )
        versions = ""
    source = as_text(row.get("source"))
    origin = origin._replace(index_name=indexes.get(source))
    read_requirement(content, f"{name}{_extras(row)}{versions}{_marker(row)}", span, origin)


def _extras(row: Mapping[str, Any]) -> str:
    return f"[{','.join(as_texts(row.get('extras')))}]" if row.get("extras") else ""


def _marker(row: Mapping[str, Any]) -> str:
    markers = [f"({text})" for text in [as_text(row.get("markers"))] if text]
    if python := convert_range(as_text(row.get("python"))):
        markers.extend(_to_marker(clause) for clause in python.split(","))
    if platform := as_text(row.get("platform")):
        markers.append(f"sys_platform == '{platform}'")
    return f" ; {' and '.join(markers)}" if markers else ""


def _to_marker(clause: str) -> str:
    digits = next(index for index, character in enumerate(clause) if character.isdigit())
    return f"python_version {clause[:digits]} '{clause[digits:]}'"
