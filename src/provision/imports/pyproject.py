"""Reads pyproject.toml: PEP 621, dependency groups (PEP 735), and the tables of tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.diagnostics import Span
from provision.imports.content import Content, is_for_linux
from provision.imports.model import ImportContext, ImportedFile, SourceText
from provision.imports.pixi import add_pixi
from provision.imports.poetry import add_poetry
from provision.imports.requirement_lines import (
    FileReference,
    RequirementOrigin,
    parse_requirement,
    read_location,
    read_requirement,
)
from provision.imports.requirements import allow_paths, read_references
from provision.imports.toml_text import TomlText, as_table, as_tables, as_text, as_texts
from provision.imports.tool_sources import (
    find_location,
    find_workspace_member,
    is_chosen,
)
from provision.imports.version_ranges import add_python

_UV = ("tool", "uv")


def read_pyproject(path: Path, text: str, context: ImportContext) -> ImportedFile:
    """Return the dependencies of a project with their groups, indexes and Python.

    Raises:
        SourceError: it is not valid TOML.
    """
    toml, content = TomlText(path, text), Content()
    allow_paths(content, path.parent, context)
    sources = _UvSources(toml, content, path.parent, context)
    project = toml.table("project")
    if requires := as_text(project.get("requires-python")):
        add_python(content, requires, toml.key(("project",), "requires-python"))
    lists: list[_List] = [(("project",), "dependencies", "", project.get("dependencies"))]
    extras = ("project", "optional-dependencies")
    lists.extend((extras, name, name, value) for name, value in toml.table(*extras).items())
    lists += _read_groups(toml)
    lists.append((_UV, "dev-dependencies", "dev", toml.table(*_UV).get("dev-dependencies")))
    own_name = canonicalize_name(as_text(project.get("name")))
    for table, key, environment, value in lists:
        for line in as_texts(value):
            requirement = parse_requirement(line)
            if requirement is None or canonicalize_name(requirement.name) != own_name:
                sources.add(line, requirement, toml.string(table, key, line), environment)
    for line in as_texts(toml.table(*_UV).get("constraint-dependencies")):
        span = toml.string(_UV, "constraint-dependencies", line)
        read_requirement(content, line, span, RequirementOrigin(is_constraint=True))
    _leave_uv_settings(toml, content)
    _read_pdm_sources(toml, content)
    add_poetry(toml, content)
    add_pixi(toml, content, ("tool", "pixi"))
    texts = toml.texts | _read_dynamic(toml, content, path, context)
    return content.to_file("pyproject.toml", texts)


_List = tuple[tuple[str, ...], str, str, Any]
"""A list of requirements: its table, its key, the name of its group, and its value."""


def _read_groups(toml: TomlText) -> list[_List]:
    """Return the groups of PEP 735 with those that they include, of PDM and of Hatch."""
    table = ("dependency-groups",)
    groups = {canonicalize_name(key): (key, part) for key, part in toml.table(*table).items()}
    lists: list[_List] = []
    for name, _ in groups.values():
        pending, seen = [canonicalize_name(name)], set[str]()
        while pending:
            member = pending.pop()
            if member in seen or member not in groups:
                continue
            seen.add(member)
            key, value = groups[member]
            lists.append((table, key, name, value))
            parts = value if isinstance(value, list) else []
            included = (as_text(as_table(part).get("include-group")) for part in parts)
            pending += [canonicalize_name(other) for other in included]
    pdm, hatch = ("tool", "pdm", "dev-dependencies"), ("tool", "hatch", "envs")
    lists += [(pdm, name, name, value) for name, value in toml.table(*pdm).items()]
    for name, fields in toml.table(*hatch).items():
        for key in ("dependencies", "extra-dependencies"):
            lists.append(((*hatch, name), key, name, as_table(fields).get(key)))
    return lists


def _read_pdm_sources(toml: TomlText, content: Content) -> None:
    """Add the indexes of PDM, which searches all of them."""
    table = ("tool", "pdm")
    for row in as_tables(toml.table(*table).get("source")):
        if url := as_text(row.get("url")):
            span = toml.string((*table, "source"), "url", url)
            if index := content.add_index(url, span, as_text(row.get("name"))):
                help_text = f"add `index: {index}` to the packages that come from it"
                content.leave(span, f"no package is bound to the index {index}", help=help_text)


class _UvSources:
    """The tables tool.uv.index and tool.uv.sources: where packages come from."""

    def __init__(
        self, toml: TomlText, content: Content, folder: Path, context: ImportContext
    ) -> None:
        self.toml, self.content = toml, content
        self.folder, self.context = folder, context
        self.indexes: dict[str, str] = {}
        self.index_rows = {
            as_text(row.get("name")): row for row in as_tables(toml.table(*_UV).get("index"))
        }
        self.sources = {
            canonicalize_name(name): value for name, value in toml.table(*_UV, "sources").items()
        }
        for name, row in self.index_rows.items():
            url = as_text(row.get("url"))
            is_of_torch = any(host in url for host in content.facts.torch_hosts)
            if not url or (is_of_torch and row.get("explicit")):
                continue  # `cuda` selects the builds of PyTorch, once a package is bound to them
            span = self._index_span(url)
            if index := content.add_index(url, span, name):
                self.indexes[name] = index
                if not row.get("explicit"):
                    content.leave(
                        span,
                        f"only packages that name the index {index} come from it",
                        "in a spec, each package names its index",
                        f"add `index: {index}` to the packages that come from it",
                    )

    def add(self, line: str, requirement: Requirement | None, span: Span, environment: str) -> None:
        """Add a requirement from the source that tool.uv.sources names for it."""
        origin = RequirementOrigin(environment=environment)
        name = canonicalize_name(requirement.name if requirement else "")
        source = self.sources.get(name)
        rows = as_tables(source) if isinstance(source, list) else [as_table(source)]
        if source is None or not rows:
            read_requirement(self.content, line, span, origin)
            return
        fitting = [
            row
            for row in rows
            if is_for_linux(as_text(row.get("marker"))) and is_chosen(row, environment)
        ]
        if not fitting or requirement is None:  # uv takes it from the index then
            read_requirement(self.content, line, span, origin)
            return
        row, index_name = fitting[0], as_text(fitting[0].get("index"))
        if not index_name:
            self._add_location(row, requirement, span, origin)
            return
        url = as_text(self.index_rows.get(index_name, {}).get("url"))
        index = self.indexes.get(index_name)
        if url and index is None:
            self.content.add_index(url, self._index_span(url))
        read_requirement(self.content, line, span, origin._replace(index_name=index))

    def _add_location(
        self,
        row: Mapping[str, Any],
        requirement: Requirement,
        span: Span,
        origin: RequirementOrigin,
    ) -> None:
        """Add a package from a repository, a path, a URL or the workspace."""
        name = canonicalize_name(requirement.name)
        if row.get("workspace") is True:
            path = find_workspace_member(self.toml, name, self.folder, self.content, self.context)
            if path is None:
                self.content.leave(
                    span,
                    f"{name} is not imported: tool.uv.sources takes it from the workspace",
                    "no member that this file lists under tool.uv.workspace has the name",
                    "add it with the `path` of its folder",
                )
                return
            row = {"path": path, "editable": True}  # as uv installs members
        location = find_location(row, requirement)
        if location is None:
            self.content.leave(
                span,
                f"{name} is not imported: its source in tool.uv.sources is unknown",
                help=f"if a package index has it, add it as {name}==VERSION",
            )
            return
        read_location(self.content, location, span, origin)

    def _index_span(self, url: str) -> Span:
        return self.toml.string((*_UV, "index"), "url", url)


def _leave_uv_settings(toml: TomlText, content: Content) -> None:
    table = toml.table(*_UV)
    for key in ("index-url", "extra-index-url"):
        urls = [as_text(table.get(key)), *as_texts(table.get(key))]
        for url in filter(None, urls):
            span = toml.string(_UV, key, url)
            if index := content.add_index(url, span):
                help_text = f"add `index: {index}` to the packages that come from it"
                content.leave(span, f"no package is bound to the index {index}", help=help_text)
    unsupported = ("find-links", "override-dependencies", "prerelease", "no-index")
    for key in (*unsupported, "no-build-isolation-package", "extra-build-dependencies"):
        if table.get(key):
            span = toml.key(_UV, key)
            content.leave(span, f"tool.uv.{key} is not imported", "a spec has no such setting")


def _read_dynamic(
    toml: TomlText, content: Content, path: Path, context: ImportContext
) -> dict[str, SourceText]:
    """Read the files from which setuptools takes dependencies; report other dynamic ones."""
    if "dependencies" not in as_texts(toml.table("project").get("dynamic")):
        return {}
    table = ("tool", "setuptools", "dynamic")
    value = as_table(toml.table(*table).get("dependencies")).get("file")
    names = [value] if isinstance(value, str) else as_texts(value)
    span = toml.key(table, "dependencies")
    if not names:
        content.leave(
            toml.key(("project",), "dynamic"),
            "the dependencies are not imported: a program computes them",
            "import never runs programs",
            "import the output of `pip freeze`",
        )
        return {}
    references = [FileReference(name, span, is_constraint=False) for name in names]
    return read_references(content, references, path.parent, context)
