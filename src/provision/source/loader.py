"""Loads a spec file as its documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from provision.errors import ExternalError, SourceError
from provision.source.document import Source
from provision.source.extends import MAX_FILE_BYTES, ExtendedFile, ExtendsChain
from provision.source.text import decode_file
from provision.source.value_tree import build_value_tree
from provision.source.yaml_parser import compose

if TYPE_CHECKING:
    from provision.effects.system import Reader

ROOT_MARKERS = ("provision.toml", "pyproject.toml", ".git")


def read_spec_file(path: Path, reader: Reader) -> tuple[Source, ...]:
    """Return the documents of a spec file, at least one, with the findings about their text.

    Raises:
        SourceError: there is no text, because the file is missing, a folder, not readable or larger
            than 1 MiB, or because PyYAML lacks libyaml.
    """
    if not yaml.__with_libyaml__:
        raise SourceError(
            "PyYAML was installed without libyaml",
            why="specs are read by libyaml alone",
            hint="pip install --force-reinstall --only-binary :all: pyyaml",
        )
    root = _root(path, reader)
    try:
        _refuse_link(path, root, reader)
        raw = reader.read(path, MAX_FILE_BYTES)
    except ExternalError as error:
        raise SourceError(
            error.what,
            why=error.why,
            hint=error.hint or "name a spec file, as in: provision lint spec.yaml",
        ) from error
    text, problems = decode_file(str(path), raw)
    if problems:
        return (Source(path, text.name, root, 0, {text.name: text}, None, problems, None),)
    sources = []
    for index, document in enumerate(compose(text)):
        origin = ExtendedFile(text.name, path.parent.resolve() / path.name)
        chain = ExtendsChain(root, reader, {text.name: text}, [origin], len(raw))
        tree = data = None
        if document.root is not None:
            tree = chain.extend(build_value_tree(document.root))
            data = tree.data()
        diagnostics = (*document.diagnostics, *chain.diagnostics)
        sources.append(Source(path, text.name, root, index, chain.texts, tree, diagnostics, data))
    return tuple(sources)


def _root(path: Path, reader: Reader) -> Path:
    """Return the nearest folder above a spec that marks a project, or the spec's own folder.

    The search follows the path as it is written: a link inside a project does not lead to another
    project. The result has its links resolved.
    """
    written, real = Path(os.path.abspath(path)).parent, _resolved(path.parent)  # noqa: PTH100
    for folder in (written, real):
        for candidate in (folder, *folder.parents):
            if _is_project_root(candidate, reader):
                return candidate.resolve()
    return real


def _refuse_link(path: Path, root: Path, reader: Reader) -> None:
    """Raise SourceError for a link that leaves the project or leads to a hidden file in it.

    Outside a project, a link may lead to a *.yaml or *.yml file anywhere.
    """
    real = _resolved(path)
    if real == _resolved(path.parent) / path.name and real.is_relative_to(root):
        return
    if not real.is_relative_to(root) and (
        _is_project_root(root, reader) or real.suffix not in {".yaml", ".yml"}
    ):
        hint = f"put the file itself below {root}, or name it by its own path"
        raise SourceError(
            f"{path} is outside the project", why=f"a link leads from there to {real}", hint=hint
        )
    if real.is_relative_to(root) and any(
        part.startswith(".") for part in real.relative_to(root).parts
    ):
        raise SourceError(
            f"{path} is a link to a hidden file",
            why=f"it leads to {real}",
            hint="put the file itself there",
        )


def _resolved(path: Path) -> Path:
    """Return a path with links resolved as far as they lead; a loop of links stays as it is."""
    return Path(os.path.realpath(path))


def _is_project_root(folder: Path, reader: Reader) -> bool:
    return any(reader.exists(folder / mark) for mark in ROOT_MARKERS)
