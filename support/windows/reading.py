"""Reads what releases use and define, and keeps both for the next run."""

from __future__ import annotations

import ast
import email
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from remaking.index import File, Source
from remaking.wheels import requirements
from windows.definitions import Definitions, State
from windows.guards import GUARDED
from windows.packages import MODULES, Package
from windows.reachable import reachable_modules
from windows.source_tree import SourceTree, sources_path
from windows.uses import ModuleUses, Use, read_uses

_MODULES = {
    "uses": (
        "source_tree",
        "outline",
        "definitions",
        "module_names",
        "guards",
        "overrides",
        "uses",
        "reachable",
        "packages",
    ),
    "declared": (),
    "names": ("source_tree", "outline", "definitions", "module_names", "guards", "overrides"),
}
"""The modules that decide each kind of reading: a change of one makes kept readings invalid."""
_USES: dict[tuple[str, bool, int], ModuleUses] = {}
"""Uses by module and checksum: most files are the same in many releases."""


Name = tuple[str, str]
"""A dotted name with a keyword argument of a call to it, the signature of an override, or ""."""


class NeededName(NamedTuple):
    """A name of another package that a release needs.

    Attributes:
        of: the other package.
        path: the dotted name, and `argument` the keyword argument of a call to it, the signature of
            an override, or "".
        severity: "error" if the import of the package or of its main part needs it, "warning" for
            the import of another entry point, or calls in the module of an entry point.
        if_present: whether it is needed only if the package finds the other one.
        file: the file that has it, and `line` its line.
    """

    of: str
    path: str
    argument: str
    severity: str
    if_present: bool
    file: str
    line: int


class Located(NamedTuple):
    """Whether a release has a name, and the file and line of its definition ("" and 0: unknown)."""

    state: str
    file: str
    line: int


class Release(NamedTuple):
    """A release: its version, the day of its upload, and the file that is read."""

    package: str
    version: Version
    uploaded: str
    file: str

    def tree(self, cache: Path) -> SourceTree:
        """Return its modules."""
        return SourceTree(sources_path(self.file, cache))


class Needs(NamedTuple):
    """What a release needs: names of other packages, and the requirements that it declares."""

    names: list[NeededName]
    declared: Mapping[str, str]


class Readings:
    """Readings of releases in a folder: one file for each release, valid for this code only."""

    def __init__(self, folder: Path) -> None:
        """Keep readings below `folder`."""
        self._cache, self._folder = folder, folder / "readings"

    def needs(self, release: Release, package: Package) -> Needs:
        """Return what a release needs."""
        names, declared = self._path(release, "uses"), self._path(release, "declared")
        if not (names.exists() and declared.exists()):
            tree = release.tree(self._cache)
            if not names.exists():
                self._keep(names, _needed_names(tree, package))
            self._keep(declared, _declared(tree.metadata()))
        rows = json.loads(names.read_text(encoding="utf-8"))
        return Needs([NeededName(*row) for row in rows], json.loads(declared.read_text("utf-8")))

    def locate(
        self, release: Release, names: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Located]:
        """Return whether a release has names; each is a path with a keyword argument or ""."""
        kept, wanted = self._path(release, "names"), set(names)
        known: dict[tuple[str, str], Located] = {}
        if kept.exists():
            rows = json.loads(kept.read_text(encoding="utf-8"))
            known = {(path, argument): Located(*where) for path, argument, *where in rows}
        missing = sorted(wanted - known.keys())
        if missing:
            tree = release.tree(self._cache)
            definitions = Definitions(tree)
            known |= {name: _locate(definitions, *name) for name in missing}
            self._keep(kept, [(*name, *where) for name, where in sorted(known.items())])
        return known

    def _path(self, release: Release, kind: str) -> Path:
        return self._folder / f"{kind}-{_digest(kind)}" / f"{release.file}.json"

    @staticmethod
    def _keep(path: Path, rows: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f"{path.name}.part")
        half.write_text(json.dumps(rows), encoding="utf-8")
        half.replace(path)


@cache
def _digest(kind: str) -> str:
    folder = Path(__file__).parent
    texts = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in _MODULES[kind]]
    code = "".join(ast.dump(ast.parse(text)) for text in texts)
    return hashlib.sha256(code.encode()).hexdigest()[:12]


def _locate(definitions: Definitions, path: str, argument: str) -> Located:
    if argument.startswith("("):
        found = definitions.override(path, argument)
        return Located(found.state.value, definitions.tree.paths.get(found.module, ""), found.line)
    found = definitions.find(path)
    if found.state is State.PRESENT and argument:
        found = definitions.argument(found, argument)
    elif argument:
        found = found._replace(state=State.UNDECIDED)  # the name itself is another window
    return Located(found.state.value, definitions.tree.paths.get(found.module, ""), found.line)


def _needed_names(tree: SourceTree, package: Package) -> list[NeededName]:
    others = MODULES.keys() - {package.module.partition(".")[0]}
    definitions = Definitions(tree)
    entries = {
        severity: [module for name in names if (module := _module_of(definitions, package, name))]
        for severity, names in (("error", package.main), ("warning", package.others))
    }
    called = {*entries["error"], *entries["warning"]}

    def read(module: str) -> ModuleUses:
        key = (module, module in called, tree.checksum(module))
        if key not in _USES:
            _USES[key] = read_uses(tree, module, others, calls=module in called)
        return _USES[key]

    main = reachable_modules(tree, [package.module, *entries["error"]], read)
    further = reachable_modules(tree, entries["warning"], read)
    needed: dict[tuple[str, str, str, bool], NeededName] = {}
    for module, guards in {**further, **main}.items():
        for use in read(module).uses:
            row = _needed(tree, use, guards, module in main)
            if row is not None:
                key = (row.path, row.argument, row.severity, row.if_present)
                needed.setdefault(key, row)
    return sorted(needed.values())


def _needed(tree: SourceTree, use: Use, guards: frozenset[str], is_main: bool) -> NeededName | None:
    guards |= use.guards
    if guards & GUARDED:
        return None
    of = MODULES[use.path.partition(".")[0]]
    module = use.path.partition(".")[0]
    if any(guard.partition(":")[2] not in {*MODULES, "torch", module} for guard in guards):
        return None
    severity = "error" if is_main and not use.in_function else "warning"
    return NeededName(
        of,
        use.path,
        use.argument,
        severity,
        f"presence:{module}" in guards,
        tree.paths[use.module],
        use.line,
    )


def _module_of(definitions: Definitions, package: Package, name: str) -> str:
    """Return the module of an entry point; "" if the release does not have it."""
    if name.startswith(f"{package.module}."):
        return name if definitions.tree.has_module(name) else ""
    found = definitions.find(f"{package.module}.{name}")
    return found.module if found.node is not None else ""


def _declared(text: str) -> dict[str, str]:
    """Return what METADATA requires without an extra, by package."""
    declared: dict[str, SpecifierSet] = {}
    for requirement in requirements(email.message_from_string(text)):
        if requirement.marker is None or "extra" not in str(requirement.marker):
            name = canonicalize_name(requirement.name)
            declared[name] = declared.get(name, SpecifierSet()) & requirement.specifier
    return {name: str(specifier) for name, specifier in declared.items()}


def release_of(package: str, file: File | Source) -> Release:
    """Return the release of a wheel or a source distribution."""
    return Release(package, file.version, file.uploaded[:10], file.name)
