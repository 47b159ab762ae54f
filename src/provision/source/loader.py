"""Loads a spec file with all that it extends, merged with positions, and validates it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

import yaml
from packaging.utils import canonicalize_name

from provision.assets import find_builtin_profile, list_builtin_profiles
from provision.diagnostics import Diagnostic, Location, RouteLocation
from provision.errors import ExternalError, SourceError
from provision.source.document import Source
from provision.source.findings import make_finding
from provision.source.model_config import add_model_sizes
from provision.source.nodes import (
    LocatedValue,
    Mapping,
    Scalar,
    Sequence,
    TextFile,
    build_value_tree,
    decode_file,
)
from provision.source.project_root import find_project_root, refuse_link, resolve_path
from provision.source.yaml_parser import ParsedDocument, compose
from provision.spelling import nearest_words

if TYPE_CHECKING:
    from provision.effects.system import Reader
    from provision.kinds import Registry
    from provision.spec import Spec

MAX_FILE_BYTES = 1 << 20
"""Bytes; a spec of 60 lines has 1.3 kB (our choice)."""
MAX_TOTAL_BYTES = 2 << 20
"""Bytes of all files that one spec extends, itself included (our choice)."""
MAX_EXTENDS_DEPTH = 8
_BUILTIN = "builtin:"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def read_spec_file(path: Path, reader: Reader, root: Path | None = None) -> tuple[Source, ...]:
    """Return the documents of a spec file, at least one, with the findings about their text.

    Args:
        path: the file.
        reader: reads it.
        root: the root of its project; None to find it.

    Raises:
        SourceError: there is no text, because the file is missing, a folder, not readable or larger
            than 1 MiB, or because PyYAML lacks libyaml.
    """
    if not yaml.__with_libyaml__:
        raise SourceError(
            "PyYAML was installed without libyaml",
            why="provision can read specs only with libyaml",
            hint="run `pip install --force-reinstall --only-binary :all: pyyaml`",
        )
    root = root or find_project_root(path, reader)
    folder = resolve_path(path.parent)
    try:
        refuse_link(path, root, reader, folder)
        raw = reader.read(path, MAX_FILE_BYTES)
    except ExternalError as error:
        raise SourceError(
            error.what,
            why=error.why,
            hint=error.hint or "use the path of a spec, such as provision.yaml",
        ) from error
    text, problems = decode_file(str(path), raw)
    if problems:
        return (Source(path, text.name, root, 0, {text.name: text}, None, problems, None),)
    sources = []
    origin = ExtendedFile(text.name, folder / path.name)
    for index, document in enumerate(compose(text)):
        chain = ExtendsChain(root, reader, {text.name: text}, [origin], len(raw))
        tree = data = None
        if document.root is not None:
            tree = chain.extend(build_value_tree(document.root))
            data = add_model_sizes(tree.data(), folder, root, reader, chain.diagnostics)
        diagnostics = (*document.diagnostics, *chain.diagnostics)
        sources.append(Source(path, text.name, root, index, chain.texts, tree, diagnostics, data))
    return tuple(sources)


@dataclass(frozen=True, slots=True)
class ExtendedFile:
    """A file of the chain: its display name and its resolved path."""

    name: str
    path: Path
    builtin: bool = False


class _Refused(Exception):
    """An extended file cannot be used."""

    def __init__(self, kind: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.kind, self.message, self.hint = kind, message, hint


@dataclass(slots=True)
class ExtendsChain:
    """The files from a spec to the last one that it extends."""

    root: Path
    reader: Reader
    texts: dict[str, TextFile]
    seen: list[ExtendedFile]
    bytes_read: int
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def extend(self, tree: LocatedValue) -> LocatedValue:
        """Return a tree merged over all that it extends.

        A problem is added to the findings, and the tree is returned as far as it could be read.
        """
        value = tree.children.get("extends")
        name = value.node.resolved if value and isinstance(value.node, Scalar) else None
        if value is None or not isinstance(name, str):
            return tree
        try:
            base = self._read(name)
        except _Refused as refused:
            # Routes refer to the spec itself; an extended file has only spans.
            where: Location = value.at.span
            if value.at.text.name == self.seen[0].name:
                where = RouteLocation(("extends",))
            finding = make_finding(refused.kind, refused.message, where, hint=refused.hint)
            self.diagnostics.append(finding)
            return tree
        return merge_trees(self.extend(base), tree)

    def _read(self, name: str) -> LocatedValue:
        origin = self._locate(name)
        if origin.path in [file.path for file in self.seen]:
            chain = " -> ".join([*(file.name for file in self.seen), origin.name])
            raise _Refused(
                "extends-cycle",
                f"a file extends itself: {chain}",
                "remove `extends` from one of them",
            )
        if origin.path.suffix not in {".yaml", ".yml"}:
            raise _Refused(
                "extends-unusable",
                f"the name of {name} does not end in .yaml or .yml",
                "rename the extended file",
            )
        if len(self.seen) > MAX_EXTENDS_DEPTH:
            raise _Refused(
                "extends-limit",
                f"more than {MAX_EXTENDS_DEPTH} files extend one another",
                "merge them into fewer files",
            )
        try:
            raw = self.reader.read(origin.path, MAX_FILE_BYTES)
        except ExternalError as error:
            raise _Refused(
                "extends-missing",
                f"{name} cannot be read: {error.why or error.what}",
                error.hint or "the path in `extends` must be relative to this file",
            ) from None
        self.seen.append(origin)
        self.bytes_read += len(raw)
        if self.bytes_read > MAX_TOTAL_BYTES:
            raise _Refused(
                "extends-limit",
                f"all files together are larger than {MAX_TOTAL_BYTES >> 20} MiB",
                "extend smaller files",
            )
        return self._parse(origin, raw)

    def _locate(self, name: str) -> ExtendedFile:
        file = self.seen[-1]
        if name.startswith(_BUILTIN):
            return _locate_profile(name)
        if (
            file.builtin
            or not name
            or "\\" in name
            or "\0" in name
            or PurePosixPath(name).is_absolute()
            or PureWindowsPath(name).anchor
        ):
            raise _Refused(
                "extends-outside-root",
                f"{name or '(nothing)'} is not a relative path",
                f"use the relative path of a file below {self.root}, with forward slashes",
            )
        path = Path(os.path.realpath(file.path.parent / name))
        if not path.is_relative_to(self.root):
            raise _Refused(
                "extends-outside-root",
                f"{name} is not below {self.root}",
                "move the file into the project",
            )
        if any(part.startswith(".") for part in path.relative_to(self.root).parts):
            raise _Refused(
                "extends-outside-root",
                f"{name} is hidden, or in a hidden folder",
                "move the file into a folder that is not hidden",
            )
        shown = os.path.normpath(Path(file.name).parent / name)
        # After a linked folder, `..` may lead to another file with the same display name.
        if shown in self.texts and path not in [file.path for file in self.seen]:
            shown = str(path)
        return ExtendedFile(shown, path)

    def _parse(self, origin: ExtendedFile, raw: bytes) -> LocatedValue:
        text, documents, findings = _parse_extended(origin.name, raw)
        self.texts[origin.name] = text
        self.diagnostics += findings
        if len(documents) > 1:
            raise _Refused(
                "extends-unusable",
                f"{origin.name} contains {len(documents)} documents",
                "extend a file that has only one document",
            )
        if not documents or documents[0].root is None:
            raise _Refused(
                "extends-unusable",
                f"{origin.name} has no mapping that can be extended",
                "fix the errors in that file first",
            )
        return build_value_tree(documents[0].root)


@lru_cache(maxsize=16)
def _parse_extended(
    name: str, raw: bytes
) -> tuple[TextFile, tuple[ParsedDocument, ...], tuple[Diagnostic, ...]]:
    """Return the text and the documents of a file that many specs may extend, and its findings."""
    text, problems = decode_file(name, raw)
    documents = compose(text) if not problems else ()
    found = (problem for document in documents for problem in document.diagnostics)
    return text, documents, (*problems, *found)


def _locate_profile(name: str) -> ExtendedFile:
    profile, profiles = name.removeprefix(_BUILTIN), list_builtin_profiles()
    if profile in profiles:
        return ExtendedFile(name, find_builtin_profile(profile).resolve(), builtin=True)
    suggestions = nearest_words(profile, profiles) or profiles[:5]
    hint = "this installation has no profiles"
    if suggestions:
        names = ", ".join(_BUILTIN + suggestion for suggestion in suggestions)
        hint = f"available profiles: {names}"
    raise _Refused("extends-missing", f"there is no profile {name}", hint)


def merge_trees(
    base: LocatedValue, child: LocatedValue, route: tuple[str, ...] = ()
) -> LocatedValue:
    """Return a child merged over its base.

    Maps merge, packages merge by name, other lists replace, and null removes.
    """
    if (
        route == ("packages",)
        and isinstance(base.node, Sequence)
        and isinstance(child.node, Sequence)
    ):
        return _merge_packages(base, child)
    if not (isinstance(base.node, Mapping) and isinstance(child.node, Mapping)):
        return child
    children = dict(base.children)
    for key, value in child.children.items():
        if _is_null(value):
            children.pop(key, None)
        elif key in children:
            children[key] = merge_trees(children[key], value, (*route, str(key)))
        else:
            children[key] = _without_nulls(value)
    return replace(child, children=children)


def _merge_packages(base: LocatedValue, child: LocatedValue) -> LocatedValue:
    packages = list(base.children.values())
    names = [package_name(item) for item in packages]
    for item in child.children.values():
        name = package_name(item)
        if name and name in names:
            packages[names.index(name)] = item
        else:
            packages.append(item)
            names.append(name)
    return replace(child, children=dict(enumerate(packages)))


def package_name(item: LocatedValue) -> str | None:
    """Return the canonical name of an item of `packages`, or None."""
    node = item.children["name"].node if "name" in item.children else item.node
    if not isinstance(node, Scalar) or not isinstance(node.resolved, str):
        return None
    name = _NAME.match(node.resolved)
    return canonicalize_name(name[1]) if name else None


def _is_null(value: LocatedValue) -> bool:
    return isinstance(value.node, Scalar) and value.node.resolved is None


def _without_nulls(value: LocatedValue) -> LocatedValue:
    if not isinstance(value.node, Mapping):
        return value
    children = {
        key: _without_nulls(child) for key, child in value.children.items() if not _is_null(child)
    }
    return replace(value, children=children)


def validate_source(
    source: Source, registry: Registry | None = None
) -> tuple[Spec | None, tuple[Diagnostic, ...]]:
    """Return the spec and (), or None and the findings about its shape.

    `registry` has the kinds that the spec may name; default: those of this run.

    The result is (None, ()) for a document without data, whose text is broken: its findings are in
    `source.diagnostics`, which callers check in any case.
    """
    if source.data is None:
        return None, ()
    # Callers that only read the text do not load the model.
    from pydantic import ValidationError

    from provision.kinds import registry_in_use
    from provision.spec import Spec

    registry = registry or registry_in_use.get()
    data = {"name": default_spec_name(source), **source.data}
    try:
        return Spec.model_validate(data, context=registry), ()
    except RecursionError:
        # packaging parses markers recursively, with a level for each parenthesis.
        finding = make_finding(
            "bad-format",
            "a package's environment marker is nested too deeply",
            RouteLocation(("packages",)),
            hint="use fewer parentheses",
        )
        return None, (finding,)
    except ValidationError as error:
        # A valid spec does not load the messages.
        from provision.source.schema_findings import to_findings

        return None, to_findings(source, data, error, registry)


def default_spec_name(source: Source) -> str:
    """Return the name of a spec without one: a valid form of its file's stem."""
    name = re.sub(r"[^a-z0-9]+", "-", source.path.stem.lower()).strip("-")
    return name[:63].strip("-") or "environment"
