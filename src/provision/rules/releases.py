"""Which known releases of torch and transformers a spec, or a resolved set, still lets through."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts.versions import (
    admitted_versions,
    has_version_in_range,
    named_versions,
    require_version,
)
from provision.rules.package_lines import find_line, is_from_other_index, version_specifiers
from provision.rules.rule import LintContext


class AdmittedReleases(NamedTuple):
    """The releases of one package that are still possible.

    `wanted` says in words what was asked for; `known` are those in the fact table, oldest first;
    `beyond` tells whether newer ones are possible as well;
    `route` is the package's line, or `packages` when it is not listed.
    """

    requested: str
    known: tuple[str, ...]
    includes_newer: bool
    route: Route


def torch_releases(context: LintContext) -> AdmittedReleases | None:
    """Return what torch may be; None when the spec does not name it, or takes it from where the
    table does not hold (conda, a foreign index).
    """
    return context.cached(
        "torch",
        lambda: _releases(context, "torch", tuple(row.release for row in context.facts.torch)),
    )


def transformers_releases(context: LintContext) -> AdmittedReleases | None:
    """Return what transformers may be, as the ends of the table's runs and the versions that the
    spec names; None when it does not name it.
    """
    return context.cached("transformers", lambda: _transformers(context))


def _transformers(context: LintContext) -> AdmittedReleases | None:
    ends = context.facts.transformers_read
    asked = find_line(context, "transformers")
    specifiers = version_specifiers(asked[1]) if asked else None
    mentioned = (
        (str(version) for version in named_versions(specifiers)) if specifiers is not None else ()
    )
    further = tuple(
        version
        for version in mentioned
        if version not in ends and context.facts.has_transformers_release(version)
    )
    return _releases(context, "transformers", _sorted(ends + further) if further else ends)


def _releases(context: LintContext, name: str, table: tuple[str, ...]) -> AdmittedReleases | None:
    asked = find_line(context, name)
    if name == "torch" and asked and is_from_other_index(context, asked[1]):
        return None
    route: Route = asked[0] if asked else ("packages",)
    if context.resolved is not None:
        return _locked(context, name, context.resolved.versions.get(name), route)
    specifiers = version_specifiers(asked[1]) if asked else None
    if asked is None or specifiers is None:
        return None
    return AdmittedReleases(
        f"{name}{asked[1].version}",
        admitted_versions(specifiers, table),
        has_version_in_range(specifiers, f"{table[-1]}.0.1"),
        route,
    )


def _locked(
    context: LintContext, name: str, version: str | None, route: Route
) -> AdmittedReleases | None:
    if version is None:
        return None
    release = context.facts.torch_release(version) if name == "torch" else None
    known = (
        (release.release if release else version,)
        if release or (name == "transformers" and context.facts.has_transformers_release(version))
        else ()
    )
    return AdmittedReleases(f"{name} {version}", known, not known, route)


@lru_cache(maxsize=256)
def _sorted(versions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=require_version))
