"""What a spec extends: files below the root and built-in profiles, merged into one tree that still
knows where each value stands.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provision.assets import find_builtin_profile, list_builtin_profiles
from provision.diagnostics import Diagnostic, RouteLocation
from provision.errors import ExternalError
from provision.source.findings import make_finding
from provision.source.nodes import Mapping, Scalar, Sequence
from provision.source.text import TextFile, decode_file
from provision.source.value_tree import LocatedValue, build_value_tree
from provision.source.yaml_parser import compose
from provision.spelling import nearest_words

if TYPE_CHECKING:
    from provision.effects.system import Reader

MAX_FILE_BYTES = 1 << 20
"""Bytes; a spec of 60 lines has 1.3 kB (our choice)."""
MAX_TOTAL_BYTES = 2 << 20
"""Bytes of all files that one spec extends, itself included (our choice)."""
MAX_EXTENDS_DEPTH = 8
_BUILTIN = "builtin:"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


@dataclass(frozen=True, slots=True)
class ExtendedFile:
    """A file of the chain: the name it is shown by, its resolved path, and whether it ships with
    this program.
    """

    name: str
    path: Path
    builtin: bool = False


class _Refused(Exception):
    """Something stands in the way of a file that is extended."""

    def __init__(self, kind: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.kind, self.message, self.hint = kind, message, hint


@dataclass(slots=True)
class ExtendsChain:
    """The files met on the way from a spec to the last that it extends."""

    root: Path
    reader: Reader
    texts: dict[str, TextFile]
    seen: list[ExtendedFile]
    bytes_read: int
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def extend(self, tree: LocatedValue) -> LocatedValue:
        """Return `tree` over all that it extends; what stands in the way is added to the findings,
        and the tree returned as far as it could be read.
        """
        named = tree.children.get("extends")
        if (
            named is None
            or not isinstance(named.node, Scalar)
            or not isinstance(named.node.resolved, str)
        ):
            return tree
        try:
            base = self._read(named.node.resolved)
        except _Refused as refused:
            # In the spec itself the place is a route; in a file that it extends, only the text can
            # be pointed at.
            where = (
                RouteLocation(("extends",))
                if named.at.text.name == self.seen[0].name
                else named.at.span
            )
            self.diagnostics.append(
                make_finding(refused.kind, refused.message, where, hint=refused.hint)
            )
            return tree
        return merge_trees(self.extend(base), tree)

    def _read(self, name: str) -> LocatedValue:
        origin = self._locate(name)
        if origin.path in [other.path for other in self.seen]:
            way = " -> ".join([*(other.name for other in self.seen), origin.name])
            raise _Refused(
                "extends-cycle",
                f"a file extends itself: {way}",
                "take `extends` out of one of them",
            )
        if origin.path.suffix not in {".yaml", ".yml"}:
            raise _Refused(
                "extends-unusable",
                f"{name} is not called *.yaml or *.yml",
                "give the file that is extended such a name",
            )
        if len(self.seen) > MAX_EXTENDS_DEPTH:
            raise _Refused(
                "extends-limit",
                f"more than {MAX_EXTENDS_DEPTH} files extend one another",
                "put what they say into fewer files",
            )
        try:
            raw = self.reader.read(origin.path, MAX_FILE_BYTES)
        except ExternalError as error:
            raise _Refused(
                "extends-missing",
                f"{name} cannot be read: {error.what}",
                error.hint or "`extends` names a file as seen from this one",
            ) from None
        self.seen.append(origin)
        self.bytes_read += len(raw)
        if self.bytes_read > MAX_TOTAL_BYTES:
            raise _Refused(
                "extends-limit",
                f"all files together are larger than {MAX_TOTAL_BYTES >> 20} MiB",
                "extend smaller files",
            )
        return self._composed(origin, raw)

    def _locate(self, name: str) -> ExtendedFile:
        here = self.seen[-1]
        if name.startswith(_BUILTIN):
            profile = name.removeprefix(_BUILTIN)
            if profile in list_builtin_profiles():
                return ExtendedFile(name, find_builtin_profile(profile).resolve(), builtin=True)
            known = nearest_words(profile, list_builtin_profiles()) or list_builtin_profiles()[:5]
            hint = (
                "there are: " + ", ".join(_BUILTIN + other for other in known)
                if known
                else "this installation has no profiles"
            )
            raise _Refused("extends-missing", f"there is no profile {name}", hint)
        if (
            here.builtin
            or not name
            or "\\" in name
            or "\0" in name
            or PurePosixPath(name).is_absolute()
            or PureWindowsPath(name).anchor
        ):
            raise _Refused(
                "extends-outside-root",
                f"{name or '(nothing)'} is no relative path",
                f"name a file below {self.root}, with /",
            )
        path = Path(os.path.realpath(here.path.parent / name))
        if not path.is_relative_to(self.root):
            raise _Refused(
                "extends-outside-root",
                f"{name} is not below {self.root}",
                "move the file into the project",
            )
        if any(part.startswith(".") for part in path.relative_to(self.root).parts):
            raise _Refused(
                "extends-outside-root",
                f"{name} is a hidden file, or in a hidden folder",
                "move the file into a folder that is not hidden",
            )
        shown = os.path.normpath(Path(here.name).parent / name)
        # Behind a linked folder, `..` may lead to another file of the same shown name.
        return ExtendedFile(
            str(path)
            if shown in self.texts and path not in [other.path for other in self.seen]
            else shown,
            path,
        )

    def _composed(self, origin: ExtendedFile, raw: bytes) -> LocatedValue:
        text, problems = decode_file(origin.name, raw)
        self.texts[origin.name] = text
        documents = compose(text) if not problems else ()
        self.diagnostics += [
            *problems,
            *(problem for document in documents for problem in document.diagnostics),
        ]
        if len(documents) > 1:
            raise _Refused(
                "extends-unusable",
                f"{origin.name} holds {len(documents)} documents",
                "extend a file with one document",
            )
        if not documents or documents[0].root is None:
            raise _Refused(
                "extends-unusable",
                f"{origin.name} holds no mapping that could be extended",
                "mend that file first",
            )
        return build_value_tree(documents[0].root)


def merge_trees(
    base: LocatedValue, child: LocatedValue, route: tuple[str, ...] = ()
) -> LocatedValue:
    """Return `child` over `base`: maps merge, packages merge by name, other lists replace, null
    removes.
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
        if isinstance(value.node, Scalar) and value.node.resolved is None:
            children.pop(key, None)
        elif key in children:
            children[key] = merge_trees(children[key], value, (*route, str(key)))
        else:
            children[key] = _without_nulls(value)
    return replace(child, children=children)


def _merge_packages(base: LocatedValue, child: LocatedValue) -> LocatedValue:
    wanted = list(base.children.values())
    names = [package_name(item) for item in wanted]
    for item in child.children.values():
        name = package_name(item)
        if name and name in names:
            wanted[names.index(name)] = item
        else:
            wanted.append(item)
            names.append(name)
    return replace(child, children=dict(enumerate(wanted)))


def package_name(item: LocatedValue) -> str | None:
    """Return the canonical name of an item of `packages`, None when it has none."""
    node = item.children["name"].node if "name" in item.children else item.node
    found = (
        _NAME.match(node.resolved)
        if isinstance(node, Scalar) and isinstance(node.resolved, str)
        else None
    )
    return canonicalize_name(found[1]) if found else None


def _without_nulls(placed: LocatedValue) -> LocatedValue:
    if not isinstance(placed.node, Mapping):
        return placed
    kept = {
        key: child
        for key, child in placed.children.items()
        if not (isinstance(child.node, Scalar) and child.node.resolved is None)
    }
    return replace(placed, children={key: _without_nulls(child) for key, child in kept.items()})
