"""The known releases of torch and transformers that a spec or a resolved set admits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from provision.diagnostics import RelatedLocation, Route
from provision.facts import TorchRelease
from provision.facts.versions import (
    admitted_versions,
    has_version_in_range,
    named_versions,
    require_version,
)
from provision.rules.package_lines import find_line, is_from_other_index, version_specifiers
from provision.rules.rule import LintContext, related_at


class AdmittedReleases(NamedTuple):
    """The releases of a package that its specifiers, or the resolved set, admit.

    Attributes:
        requested: the requirement as text.
        known: releases in the table of facts, oldest first.
        includes_newer: whether releases newer than the table are admitted too.
        route: the package's line; `packages` if it is not listed.
    """

    requested: str
    known: tuple[str, ...]
    includes_newer: bool
    route: Route

    @property
    def related(self) -> tuple[RelatedLocation, ...]:
        """The package's line as a further location of a finding."""
        name = re.split(r"[^a-z]", self.requested, maxsplit=1)[0]
        return related_at(self.route, f"{name} requested here")


def torch_releases(context: LintContext) -> AdmittedReleases | None:
    """Return the admitted releases of torch; None if it is not listed or from another index."""
    return context.cached(
        "torch", lambda: _releases(context, "torch", context.facts.torch_versions)
    )


def torch_rows(context: LintContext, releases: AdmittedReleases | None) -> list[TorchRelease]:
    """Return the facts about the admitted releases of torch, oldest first."""
    rows = map(context.facts.torch_release, releases.known if releases else ())
    return [row for row in rows if row]


def transformers_releases(context: LintContext) -> AdmittedReleases | None:
    """Return the admitted releases of transformers; None if it is not listed.

    They are the ends of the table's ranges and the versions that the spec names.
    """
    return context.cached("transformers", lambda: _transformers(context))


def _transformers(context: LintContext) -> AdmittedReleases | None:
    table = context.facts.transformers_read
    line = find_line(context, "transformers")
    specifiers = version_specifiers(line[1]) if line else None
    if specifiers is not None:
        named = (str(version) for version in named_versions(specifiers))
        further = {name for name in named if context.facts.has_transformers_release(name)}
        if not further.issubset(table):
            table = _sorted(frozenset(table) | further)
    return _releases(context, "transformers", table)


def _releases(context: LintContext, name: str, table: tuple[str, ...]) -> AdmittedReleases | None:
    route, package = find_line(context, name) or (("packages",), None)
    if name == "torch" and package and is_from_other_index(context, package):
        return None
    if context.resolved is not None:
        version = context.resolved.versions.get(name)
        if version is None:
            return None
        known: tuple[str, ...] = ()
        if name == "torch" and (release := context.facts.torch_release(version)):
            known = (release.release,)
        elif name == "transformers" and context.facts.has_transformers_release(version):
            known = (version,)
        return AdmittedReleases(f"{name} {version}", known, not known, route)
    specifiers = version_specifiers(package) if package else None
    if package is None or specifiers is None:
        return None
    return AdmittedReleases(
        f"{name}{package.version}",
        admitted_versions(specifiers, table),
        has_version_in_range(specifiers, f"{table[-1]}.0.1"),
        route,
    )


@lru_cache(maxsize=256)
def _sorted(versions: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=require_version))
