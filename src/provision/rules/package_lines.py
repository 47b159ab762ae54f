"""The package lines of a spec: routes, specifiers, indexes, and edits of a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urlsplit

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Replace, Route, RouteLocation
from provision.facts.versions import parse_specifiers
from provision.rules.edits import yaml_scalar
from provision.rules.rule import LintContext
from provision.spec import Package, canonical_name

MAX_SPECIFIER_LENGTH = 256
"""Characters: comparison takes quadratic time, and no person writes more. Our choice."""


def package_lines(context: LintContext) -> Iterator[tuple[Route, Package]]:
    """Yield each package with the route of its line."""
    for index, package in enumerate(context.spec.packages):
        yield ("packages", index), package


def index_lines(context: LintContext) -> Iterator[tuple[Route, Package]]:
    """Yield each package that comes from an index or a channel, with the route of its line."""
    for route, package in package_lines(context):
        if package.is_from_index:
            yield route, package


def find_line(context: LintContext, name: str) -> tuple[Route, Package] | None:
    """Return the first line of a package, or None if it is not listed."""
    return context.first_lines.get(canonical_name(name))


def rename_edit(context: LintContext, route: Route, package: Package, name: str) -> Replace:
    """Return the edit that changes the name of a package and keeps the rest of its line."""
    text = context.source.text(route)
    if text is None:
        return Replace(RouteLocation((*route, "name")), name)
    line = name + text.strip().removeprefix(package.name)
    return Replace(RouteLocation(route), yaml_scalar(line, plain=context.source.is_plain(route)))


def set_version_edit(context: LintContext, route: Route, package: Package, version: str) -> Replace:
    """Return the edit that changes the version specifiers of a package."""
    text = context.source.text(route)
    if text is None:
        return Replace(RouteLocation((*route, "version")), json.dumps(version))
    extras = f"[{','.join(package.extras)}]" if package.extras else ""
    marker = f" ; {package.marker}" if package.marker else ""
    line = f"{package.name}{extras}{version}{marker}"
    return Replace(RouteLocation(route), yaml_scalar(line, plain=context.source.is_plain(route)))


@lru_cache(maxsize=4096)
def without_local(version: str) -> str:
    """Return version specifiers without local tags: "==2.0.1" for "==2.0.1+cu118"."""
    return re.sub(r"\+[A-Za-z0-9._-]+", "", version)


def version_specifiers(package: Package) -> SpecifierSet | None:
    """Return the specifiers of a package without local tags; None if they are too long."""
    if len(package.version) <= MAX_SPECIFIER_LENGTH:
        return parse_specifiers(without_local(package.version))
    return None


def is_from_other_index(context: LintContext, package: Package) -> bool:
    """Return whether a package comes from conda or its own index, to which no table applies."""
    index = context.spec.indexes.get(package.index or "")
    return package.source == "conda" or (
        index is not None and url_host(index.url) not in context.facts.torch_hosts
    )


def url_host(url: str) -> str:
    """Return the host name of a URL in lower case, or ""."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
