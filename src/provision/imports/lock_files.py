"""Reads lock files: pylock.toml (PEP 751) and uv.lock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from provision.diagnostics import Span
from provision.imports.content import Content, is_for_linux
from provision.imports.model import ImportContext, ImportedFile
from provision.imports.quoting import quote_text
from provision.imports.requirement_lines import RequirementOrigin, read_requirement
from provision.imports.toml_text import TomlText, as_table, as_tables, as_text, as_texts
from provision.imports.version_ranges import add_python

_GROUP = re.compile(r"['\"]([\w.-]+)['\"]\s+in\s+(?:extras|dependency_groups)\b")
_GROUP_WHY = "it depends on a group, which a marker in a spec cannot name"
_USUAL_PYTHON = "3.11"
_OWN_SOURCES = ("virtual", "editable", "directory")


class _Choice(NamedTuple):
    """A direct dependency of a project in uv.lock: its extras, marker and group."""

    extras: tuple[str, ...]
    marker: str
    environment: str


def read_pylock(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the packages of a lock in the standard format, which names no chosen ones.

    Raises:
        SourceError: it is not valid TOML.
    """
    toml, content = TomlText(path, text), Content()
    if requires := as_text(toml.data.get("requires-python")):
        add_python(content, requires, toml.key((), "requires-python"))
    indexes: dict[str, str | None] = {}
    for number, package in enumerate(as_tables(toml.data.get("packages"))):
        name, version = as_text(package.get("name")), as_text(package.get("version"))
        span = _table_span(toml, "packages", number, "version" if version else "name")
        source = next((key for key in ("vcs", "directory", "archive") if key in package), "")
        if source or not version:
            _leave_source(content, name, source or "unknown", span)
            continue
        url = as_text(package.get("index"))
        if url and url not in indexes:
            indexes[url] = content.add_index(url, span)
        marker = as_text(package.get("marker"))
        group = _GROUP.search(marker)
        if group:
            if group[0] != marker:
                content.leave(span, f"the marker of {quote_text(name)} is not imported", _GROUP_WHY)
            marker = ""
        suffix = f" ; {marker}" if marker else ""
        origin = RequirementOrigin(
            is_exact=True,
            environment=group[1] if group else "",
            index_name=indexes.get(url),
        )
        read_requirement(content, f"{name}=={version}{suffix}", span, origin)
    return content.to_file("pylock.toml", toml.texts, is_resolved=True)


def read_uv_lock(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the packages of uv.lock; direct dependencies are not `is_exact`.

    Raises:
        SourceError: it is not valid TOML.
    """
    toml, content = TomlText(path, text), Content()
    if requires := as_text(toml.data.get("requires-python")):
        add_python(content, requires, toml.key((), "requires-python"))
    packages = as_tables(toml.data.get("package"))
    projects = [package for package in packages if _is_project(package)]
    choices = _list_choices(projects)
    forks: dict[str, list[int]] = {}
    for number, package in enumerate(packages):
        if not _is_project(package):
            forks.setdefault(canonicalize_name(as_text(package.get("name"))), []).append(number)
    values = [str(part.value) for part in content.settings if part.route == ("python",)]
    python = next((value for value in values if value.startswith("3.")), _USUAL_PYTHON)
    reader = _UvPackages(toml, content)
    for name, numbers in forks.items():
        fitting = [number for number in numbers if _is_for_linux(packages[number], python)]
        for number in numbers:
            if number not in (fitting or numbers[:1]):
                span = _table_span(toml, "package", number, "version")
                version = quote_text(as_text(packages[number].get("version")))
                content.leave(span, f"{name} {version} is for a different system or Python")
        for number in fitting or numbers[:1]:
            reader.add(packages[number], number, choices.get(name), is_fork=len(fitting) > 1)
    return content.to_file("uv.lock", toml.texts, is_resolved=True)


class _UvPackages:
    """Adds packages of uv.lock, with the indexes that they come from."""

    def __init__(self, toml: TomlText, content: Content) -> None:
        self.toml, self.content = toml, content
        self.indexes: dict[str, str | None] = {}

    def add(
        self, package: Mapping[str, Any], number: int, choice: _Choice | None, *, is_fork: bool
    ) -> None:
        """Add a locked package, with extras and group if it is a direct dependency."""
        name, version = as_text(package.get("name")), as_text(package.get("version"))
        span = _table_span(self.toml, "package", number, "version" if version else "name")
        source = as_table(package.get("source"))
        url = as_text(source.get("registry"))
        if not url or not version:
            _leave_source(self.content, name, next(iter(source), "unknown"), span)
            return
        if url not in self.indexes:
            self.indexes[url] = self.content.add_index(url, span)
        # A marker with `extra` says which of the conflicting extras of the project needs it.
        marker = choice.marker if choice else ""
        markers = [marker] if marker and "extra" not in marker else []
        forks = as_texts(package.get("resolution-markers"))
        if is_fork and forks:
            markers.append(" or ".join(f"({marker})" for marker in forks))
        text = " and ".join(f"({marker})" for marker in markers)
        extras = f"[{','.join(choice.extras)}]" if choice and choice.extras else ""
        origin = RequirementOrigin(
            is_exact=choice is None,
            environment=choice.environment if choice else "",
            index_name=self.indexes[url],
        )
        requirement = f"{name}{extras}=={version}{f' ; {text}' if text else ''}"
        read_requirement(self.content, requirement, span, origin)


def _is_project(package: Mapping[str, Any]) -> bool:
    source = as_table(package.get("source"))
    return any(source.get(key) for key in _OWN_SOURCES)


def _is_for_linux(package: Mapping[str, Any], python: str) -> bool:
    markers = as_texts(package.get("resolution-markers"))
    return not markers or any(is_for_linux(marker, python) for marker in markers)


def _list_choices(projects: list[Mapping[str, Any]]) -> dict[str, _Choice]:
    """Return direct dependencies of the projects by name; the main ones come first."""
    choices: dict[str, _Choice] = {}
    for project in projects:
        groups = [("", project.get("dependencies"))]
        for key in ("optional-dependencies", "dev-dependencies"):
            groups.extend(as_table(project.get(key)).items())
        for environment, rows in groups:
            for row in as_tables(rows):
                extras = tuple(as_texts(row.get("extra")))
                choice = _Choice(extras, as_text(row.get("marker")), environment)
                choices.setdefault(canonicalize_name(as_text(row.get("name"))), choice)
    return choices


def _leave_source(content: Content, name: str, source: str, span: Span) -> None:
    content.leave(
        span,
        f"{quote_text(name)} is not imported: its source is {quote_text(source)}",
        "import takes paths and repositories from requirements only",
        f"if a package index has it, add it as {quote_text(name)}==VERSION",
    )


def _table_span(toml: TomlText, name: str, number: int, key: str) -> Span:
    """Return the line of a key in the table with a number, of those named [[name]]."""
    ranges = toml.ranges(name)
    if number >= len(ranges):
        return toml.first_line()
    start, end = ranges[number]
    content = toml.file.content
    offset = start
    while 0 <= offset < end:
        offset += 1
        if content.startswith(key, offset):
            return toml.file.span(offset, toml.file.end_of_line(offset))
        offset = content.find("\n", offset)
    return toml.file.span(start, toml.file.end_of_line(start))
