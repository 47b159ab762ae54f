"""Package lines: where they stand, where they come from, and how one, or another field, is written
anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Edit, Insert, Replace, Route, RouteLocation
from provision.rules.rule import LintContext
from provision.spec import Package, canonical_name

MAX_SPECIFIER_LENGTH = 256
"""Characters: comparing takes time with the square of the number of clauses, and no requirement
that a person wrote is longer. Our choice.
"""
_BARE = re.compile(r"[A-Za-z][A-Za-z0-9._+~<>=!*-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "none"})


def package_lines(context: LintContext) -> Iterator[tuple[Route, Package]]:
    """Yield every package with the route of its line."""
    for index, package in enumerate(context.spec.packages):
        yield ("packages", index), package


def find_line(context: LintContext, name: str) -> tuple[Route, Package] | None:
    """Return the first line of a package, or None when it is not listed."""
    return context.cached("lines", lambda: _by_name(context)).get(canonical_name(name))


def _by_name(context: LintContext) -> dict[str, tuple[Route, Package]]:
    first: dict[str, tuple[Route, Package]] = {}
    for route, package in package_lines(context):
        first.setdefault(package.key, (route, package))
    return first


def rename_edit(context: LintContext, route: Route, package: Package, name: str) -> Replace:
    """Return the edit that gives the package another name and leaves the rest of its line alone."""
    text = context.source.text(route)
    if text is None:
        return Replace(RouteLocation((*route, "name")), name)
    return Replace(
        RouteLocation(route),
        yaml_scalar(
            name + text.strip().removeprefix(package.name), plain=context.source.is_plain(route)
        ),
    )


def set_version_edit(context: LintContext, route: Route, package: Package, version: str) -> Replace:
    """Return the edit that gives the package other version specifiers."""
    text = context.source.text(route)
    if text is None:
        return Replace(RouteLocation((*route, "version")), json.dumps(version))
    extras = f"[{','.join(package.extras)}]" if package.extras else ""
    marker = f" ; {package.marker}" if package.marker else ""
    return Replace(
        RouteLocation(route),
        yaml_scalar(
            f"{package.name}{extras}{version}{marker}", plain=context.source.is_plain(route)
        ),
    )


def set_field_edit(context: LintContext, route: Route, text: str) -> Edit:
    """Return the edit that gives a field another value (YAML source), whether it was written or
    left out.
    """
    return (
        Replace(RouteLocation(route), text)
        if context.source.text(route) is not None
        else Insert(route[:-1], str(route[-1]), text)
    )


def yaml_scalar(text: str, *, plain: bool = True) -> str:
    """Return `text` as a YAML scalar that stands in block and flow collections alike, without
    quotes where that is wanted and safe.
    """
    return (
        text if plain and _BARE.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text)
    )


def without_local(version: str) -> str:
    """Return version specifiers without local tags: "==2.0.1" for "==2.0.1+cu118"."""
    return re.sub(r"\+[A-Za-z0-9._-]+", "", version)


def version_specifiers(package: Package) -> SpecifierSet | None:
    """Return the specifiers of a package as public versions satisfy them (`==2.0.1+cu118` admits
    2.0.1); None when they are too long to reason about.
    """
    return (
        SpecifierSet(without_local(package.version))
        if len(package.version) <= MAX_SPECIFIER_LENGTH
        else None
    )


def is_from_other_index(context: LintContext, package: Package) -> bool:
    """Tell whether a package comes from where the tables do not hold: conda, or an index of its
    own.
    """
    index = context.spec.indexes.get(package.index or "")
    return package.source == "conda" or (
        index is not None and url_host(index.url) not in context.facts.torch_hosts
    )


def url_host(url: str) -> str:
    """Return the host name of a URL in lower case, "" when it has none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
