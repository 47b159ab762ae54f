"""Findings about names that releases use of another package, and that its releases lack."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.release_windows import (
    BrokenWindow,
    broken_window,
    broken_windows_among,
    is_declared,
)
from provision.facts.schema_packages import UndeclaredRequirement
from provision.facts.schema_windows import ReleaseWindow
from provision.rules.package_requirements import (
    RequestedPackage,
    is_certainly_within,
    related_line,
    requested_package,
    set_version_fix,
    sort_specifiers,
)
from provision.rules.packages.undeclared_requirements import check_undeclared
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule

Pair = tuple[str, str]
"""A package and another one that it uses."""


def check_windows(
    rule: Rule[LintContext], context: LintContext
) -> Iterator[tuple[Pair, Diagnostic]]:
    """Yield at most one finding of a rule about each pair of packages."""
    if context.resolved is not None:
        yield from _resolved_findings(rule, context, context.resolved)
        return
    for name in sorted(context.facts.windows_of.keys() & set(context.package_names)):
        package = requested_package(context, name)
        if package is None:
            continue
        windows = context.facts.windows_of[name]
        for of in dict.fromkeys(window.of for window in windows):
            other = requested_package(context, of)
            for finding in _pair_findings(rule, context, package, of, other):
                yield (name, of), finding


def _resolved_findings(
    rule: Rule[LintContext], context: LintContext, resolved: ResolvedSet
) -> Iterator[tuple[Pair, Diagnostic]]:
    found: dict[Pair, ReleaseWindow] = {}
    broken = broken_windows_among(context.facts, resolved.versions)
    for window in sorted(broken, key=lambda window: window.severity):
        found.setdefault((window.package, window.of), window)
    for pair, window in found.items():
        package = requested_package(context, window.package)
        if package is not None:
            for finding in check_undeclared(rule, context, package, _requirement(window)):
                yield pair, finding


def _pair_findings(
    rule: Rule[LintContext],
    context: LintContext,
    package: RequestedPackage,
    of: str,
    other: RequestedPackage | None,
) -> Findings:
    if other is not None and other.specifiers:
        broken = broken_window(
            context.facts, package.name, package.specifiers, of, other.specifiers
        )
        if broken is not None and not broken.below:
            need = _requirement(broken.window, broken.severity)
            yield from check_undeclared(rule, context, package, need)
            return
        if broken is not None and not is_declared(broken.window, other.specifiers):
            yield from _floating_finding(rule, context, package, other, broken)
            return
    for window in _ceilings(context, package, of):
        findings = list(check_undeclared(rule, context, package, _requirement(window)))
        if findings:
            yield findings[0]
            return


def _ceilings(context: LintContext, package: RequestedPackage, of: str) -> Iterator[ReleaseWindow]:
    """Yield the windows of all admitted releases that newer releases of another package break."""
    for window in sorted(context.facts.windows_of[package.name], key=lambda row: row.severity):
        if window.of != of or window.is_floor or window.severity != "error":
            continue
        if is_certainly_within(package.specifiers, window.first, window.last):
            yield window


def _floating_finding(
    rule: Rule[LintContext],
    context: LintContext,
    package: RequestedPackage,
    other: RequestedPackage,
    broken: BrokenWindow,
) -> Iterator[Diagnostic]:
    window, name = broken.window, package.name
    if context.spec.exclude_newer is not None or package.package is None:
        return
    if window.severity != "error":  # a part that the project may not use
        return
    bound = sort_specifiers(f"{package.specifiers},<{broken.below}".strip(","))
    yield rule.diagnostic(
        f"the newest {name} that {package.description} allows, {broken.release}, needs "
        f"{window.of}{window.specifier}, but {other.description} is requested",
        package.route,
        severity=Severity.WARNING,
        why=(
            f"{name} does not declare this, so the resolver may choose {broken.release}. "
            f"{window.effect[0].upper()}{window.effect[1:]}."
        ),
        help=f"use {name}{bound}, or {window.of}{window.specifier}",
        related=related_line(other),
        fix=set_version_fix(context, package, bound),
        source=window.evidence.source,
    )


def _requirement(window: ReleaseWindow, severity: Severity | None = None) -> UndeclaredRequirement:
    return UndeclaredRequirement(
        window.package,
        window.first,
        window.last,
        window.of,
        window.specifier,
        window.effect,
        str(severity or window.severity),
        window.evidence,
    )
