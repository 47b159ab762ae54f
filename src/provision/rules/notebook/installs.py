"""What the install commands of a notebook request, and what they replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from provision.diagnostics import Span
from provision.facts import Facts
from provision.facts.versions import parse_version
from provision.imports.model import ImportedPackage
from provision.imports.notebook import CellInstall
from provision.rules.notebook.context import NotebookContext, NotebookPlace, Order
from provision.rules.notebook.module_packages import MODULES

_MODULE_KINDS = frozenset({"other", "stub"})
"""Kinds of misleading names that are the names of modules, such as cv2 of opencv-python."""


class RequestedInstall(NamedTuple):
    """A package that a command installs.

    Attributes:
        install: the command.
        package: the package with its span.
        specifiers: the versions that it admits.
        local: the local version of an exact version as it is written, such as "cu118"; "" for none.
    """

    install: CellInstall
    package: ImportedPackage
    specifiers: SpecifierSet
    local: str

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.package.name

    @property
    def span(self) -> Span:
        """The requirement in its cell."""
        return self.package.span

    @property
    def is_exact(self) -> bool:
        """True if it admits one version only."""
        return any(
            clause.operator == "===" or (clause.operator == "==" and "*" not in clause.version)
            for clause in self.specifiers
        )

    @property
    def is_upgrade(self) -> bool:
        """True if the command replaces versions that are good enough."""
        short = re.compile(r"-[a-zA-Z]*U[a-zA-Z]*")
        long = ("--upgrade", "--force-reinstall", "--ignore-installed")
        return any(option in long or short.fullmatch(option) for option in self.install.options)

    def replaces(self, installed: str) -> bool:
        """Return whether the command certainly or probably replaces an installed version."""
        version = parse_version(installed)
        if version is None:
            return False
        if self.is_upgrade and not self.is_exact:
            return True
        if self.local and self.local != version.local:
            return True
        return not self.specifiers.contains(Version(version.public), prereleases=True)


def requests(context: NotebookContext) -> Iterator[RequestedInstall]:
    """Yield the packages that commands of pip install by name, in the order of the notebook."""
    for install in context.installs:
        source = context.notebook.cell(install.cell).source
        for package in install.packages:
            try:
                specifiers = Requirement(package.requirement).specifier
            except InvalidRequirement:
                continue
            written = source[package.span.start.offset : package.span.end.offset]
            local = re.search(r"={2,3}[ \t]*[^+\s;'\"]+\+([A-Za-z0-9._-]+)", written)
            yield RequestedInstall(install, package, specifiers, local[1] if local else "")


def order_of(context: NotebookContext, request: RequestedInstall) -> Order:
    """Return the position of a command in the notebook."""
    return context.order(request.install.cell, request.install.span)


def modules_of(package: str, facts: Facts) -> frozenset[str]:
    """Return the modules that a package probably installs, in lower case."""
    modules = {package.replace("-", "_")}
    for row in facts.replaced.values():
        if row.instead == package and row.kind in _MODULE_KINDS:
            modules.add(row.name.replace("-", "_"))
    modules.update(MODULES.get(package, "").split())
    modules.update(row.module for row in facts.one_of if package in row.packages)
    return frozenset(module.lower() for module in modules)


def may_be_replaced(context: NotebookContext, request: RequestedInstall) -> bool:
    """Return whether a place has another version of a package, or its packages are not known."""
    known = [place.packages for place in context.places if place.packages is not None]
    versions = [packages[request.name] for packages in known if request.name in packages]
    return not known or any(map(request.replaces, versions))


def place_without(context: NotebookContext, package: str) -> NotebookPlace | None:
    """Return the first place that is known not to have a package before the notebook runs."""
    for place in context.places:
        if place.packages is not None and package not in place.packages:
            return place
    return None


def loaded_version(
    context: NotebookContext, request: RequestedInstall, place: NotebookPlace
) -> str | None:
    """Return the version that the kernel of a place has loaded and a command replaces."""
    row = context.facts.protected.get(request.name)
    installed = (place.packages or {}).get(request.name)
    if not place.is_runtime or row is None or not row.restart or installed is None:
        return None
    return installed if request.replaces(installed) else None


def is_loaded_by_runtime(context: NotebookContext, request: RequestedInstall) -> bool:
    """Return whether the kernel of a place has loaded a package that a command replaces."""
    return any(loaded_version(context, request, place) for place in context.places)
