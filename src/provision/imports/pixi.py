"""Reads pixi.toml and the table tool.pixi of pyproject.toml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.diagnostics import Span
from provision.imports.content import Content
from provision.imports.model import ImportContext, ImportedFile, ImportedPackage
from provision.imports.quoting import quote_text
from provision.imports.requirement_lines import RequirementOrigin, read_requirement
from provision.imports.toml_text import TomlText, as_table, as_text, as_texts
from provision.imports.version_ranges import add_python, convert_range

Names = tuple[str, ...]
_PATHS = ("git", "url", "path")


def read_pixi(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return the packages of a pixi project from conda channels and package indexes.

    Raises:
        SourceError: it is not valid TOML.
    """
    toml, content = TomlText(path, text), Content()
    add_pixi(toml, content, ())
    return content.to_file("pixi.toml", toml.texts)


def add_pixi(toml: TomlText, content: Content, root: Names) -> None:
    """Add the content of the table at `root`: packages, features, variables and indexes."""
    table = toml.table(*root)
    _add_part(toml, content, root, "")
    for feature in as_table(table.get("feature")):
        _add_part(toml, content, (*root, "feature", feature), feature)
    options = as_table(table.get("pypi-options"))
    for key in ("index-url", "extra-index-urls"):
        for url in filter(None, [as_text(options.get(key)), *as_texts(options.get(key))]):
            content.add_index(url, toml.string((*root, "pypi-options"), key, url))
    for name, value in as_table(as_table(table.get("activation")).get("env")).items():
        content.set(("env", name), str(value), toml.key((*root, "activation", "env"), name))
    for key in ("tasks", "system-requirements", "pypi-options"):
        rest = as_table(table.get(key)).keys() - {"index-url", "extra-index-urls"}
        if rest:
            content.leave(
                toml.key((*root, key), min(rest)),
                f"the pixi table `{key}` is not imported",
                "a spec has no such setting" if key != "system-requirements" else "",
                "set `requires` in the spec" if key == "system-requirements" else "",
            )


def _add_part(toml: TomlText, content: Content, root: Names, environment: str) -> None:
    """Add the packages of the project or of one of its features, for all systems and Linux."""
    targets = as_table(toml.table(*root).get("target"))
    for target in targets:
        if target not in ("linux", "linux-64", "unix"):
            span = toml.key((*root, "target", target), "dependencies")
            content.leave(span, f"packages for {quote_text(target)} are not imported")
    prefixes = [root, *((*root, "target", name) for name in ("unix", "linux", "linux-64"))]
    for prefix in prefixes:
        for key in ("dependencies", "host-dependencies"):
            names = (*prefix, key)
            for name, value in toml.table(*names).items():
                _add_conda(content, name, _to_row(value), toml.key(names, name), environment)
        names = (*prefix, "pypi-dependencies")
        for name, value in toml.table(*names).items():
            _add_pypi(content, name, _to_row(value), toml.key(names, name), environment)


def _to_row(value: Any) -> Mapping[str, Any]:
    return {"version": value} if isinstance(value, str) else as_table(value)


def _leave_location(content: Content, name: str, row: Mapping[str, Any], span: Span) -> bool:
    """Add a leftover if a package comes from a path or a URL; return whether it does."""
    kind = next((key for key in _PATHS if key in row), "")
    if kind:
        content.leave(
            span,
            f"{quote_text(name)} is not imported: it comes from its {kind}",
            "import takes packages only from an index or a channel",
            f"if a package index has it, add it as {quote_text(name)}==VERSION",
        )
    return bool(kind)


def _add_conda(
    content: Content, name: str, row: Mapping[str, Any], span: Span, environment: str
) -> None:
    if _leave_location(content, name, row, span):
        return
    written = as_text(row.get("version")) or "*"
    versions = convert_range(written, is_exact_bare=name != "python")
    if name == "python":
        add_python(content, written if versions is None else versions, span)
        return
    requirement = f"{name}{versions}" if versions is not None else f"{name} {quote_text(written)}"
    channel = as_text(row.get("channel")) or None
    content.packages.append(
        ImportedPackage(
            name.lower(), requirement, span, "conda", index=channel, environment=environment
        )
    )


def _add_pypi(
    content: Content, name: str, row: Mapping[str, Any], span: Span, environment: str
) -> None:
    if _leave_location(content, name, row, span):
        return
    written = as_text(row.get("version"))
    versions = convert_range(written)
    extras = f"[{','.join(as_texts(row.get('extras')))}]" if row.get("extras") else ""
    index = None
    if url := as_text(row.get("index")):
        index = content.add_index(url, span)
    text = f"{name}{extras}{written if versions is None else versions}"
    origin = RequirementOrigin(environment=environment, index_name=index)
    read_requirement(content, text, span, origin)
