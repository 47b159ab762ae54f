"""Findings about requirements between packages that their releases do not declare."""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_packages import SAME_RELEASE, UndeclaredRequirement
from provision.facts.versions import is_pin, is_satisfiable
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import (
    RequestedPackage,
    add_package_fix,
    find_listed_provider,
    is_capped,
    origin_route,
    related_line,
    requested_package,
    set_version_fix,
)
from provision.rules.release_conflicts import may_be_brought
from provision.rules.rule import Findings, LintContext, Rule, related_at


def check_undeclared(
    rule: Rule[LintContext],
    context: LintContext,
    package: RequestedPackage,
    need: UndeclaredRequirement,
    *,
    declared: bool = False,
) -> Findings:
    """Yield the finding of a rule about a requirement of a package that is not ensured.

    An installer ensures a declared requirement if it can be met.
    """
    other = requested_package(context, need.of)
    newer = ""
    if need.specifier == SAME_RELEASE:
        if not is_pin(package.specifiers):
            return
        need = need._replace(specifier=package.specifiers)
        if other is not None and is_pin(other.specifiers):
            newer = f", or {package.name}{other.specifiers}"
    elif need.last and need.first != need.last:
        newer = f", or use {need.package}>{need.last}"
    requirement = f"{need.of}{need.specifier}"
    if other is not None and not is_satisfiable(need.specifier, other.specifiers):
        severity = need.evidence.cap_severity(Severity(need.severity))
        is_used = need.of == "bitsandbytes" and context.spec.training.method == "qlora"
        if is_used and severity is Severity.WARNING:
            severity = Severity.ERROR
        yield rule.diagnostic(
            f"{package.description} needs {requirement}"
            f"{'' if declared else ', which it does not declare'}, but "
            f"{other.description} is {context.chosen}",
            origin_route(context, other, package.route),
            severity=severity,
            why=f"{need.effect[0].upper()}{need.effect[1:]}.",
            help=f"use {requirement}{newer}",
            related=related_at(package.route, f"{package.name} requested here")
            if other.package and package.package
            else (),
            fix=set_version_fix(context, other, need.specifier),
            source=need.evidence.source,
        )
    elif not declared and context.resolved is None and _exceeds_ceiling(context, need, other):
        if other:
            fix = set_version_fix(context, other, need.specifier)
        else:
            fix = add_package_fix(need.of, need.specifier)
        yield rule.diagnostic(
            f"{package.description} needs {requirement} without declaring it, and nothing in the "
            f"spec keeps {need.of} below {need.specifier.lstrip('<=')}",
            other.route if other else package.route,
            severity=Severity.WARNING,
            why=f"The resolver chooses the newest allowed {need.of}. "
            f"{need.effect[0].upper()}{need.effect[1:]}.",
            help=f"add {requirement}{newer}",
            related=related_line(package) if other else (),
            fix=fix,
            source=need.evidence.source,
        )


def _exceeds_ceiling(
    context: LintContext, need: UndeclaredRequirement, other: RequestedPackage | None
) -> bool:
    """Return whether an installer would choose a release above an undeclared ceiling."""
    if not need.specifier.startswith("<") or context.spec.exclude_newer is not None:
        return False
    if find_line(context, need.package) is None:
        return False
    if is_capped(context, need.of, need.specifier):
        return False
    if other is not None:
        return other.may_be(need.specifier[1:])
    if find_line(context, need.of):
        return False
    is_brought = find_listed_provider(context, need.of) is not None
    return is_brought or may_be_brought(context, need.of, need.specifier[1:])
