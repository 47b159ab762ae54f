"""Findings about requirements between packages that their releases do not declare."""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Severity
from provision.facts.schema_packages import UndeclaredRequirement
from provision.facts.versions import has_version_in_range, is_satisfiable, parse_specifiers
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import (
    RequestedPackage,
    add_package_fix,
    find_listed_provider,
    is_capped,
    origin_route,
    requested_package,
    set_version_fix,
)
from provision.rules.rule import Findings, LintContext, Rule, related_at


def check_undeclared(
    rule: Rule,
    context: LintContext,
    package: RequestedPackage,
    need: UndeclaredRequirement,
    *,
    declared: bool = False,
) -> Findings:
    """Yield the finding of a rule about a requirement of a package that is not ensured.

    An installer ensures a declared requirement, as long as it can be met.
    """
    other = requested_package(context, need.of)
    severity = need.evidence.cap_severity(Severity(need.severity))
    if other is not None and not is_satisfiable(need.specifier, other.specifiers):
        yield _unmet_finding(
            rule, context, package, other, need, severity, declared=declared
        )._replace(source=need.evidence.source)
    elif not declared and context.resolved is None and _exceeds_ceiling(context, need, other):
        yield _open_finding(rule, context, package, other, need)._replace(
            source=need.evidence.source
        )


def _exceeds_ceiling(
    context: LintContext, need: UndeclaredRequirement, other: RequestedPackage | None
) -> bool:
    """Return whether an installer would choose a release above an undeclared ceiling."""
    if (
        not need.specifier.startswith("<")
        or context.spec.exclude_newer is not None
        or find_line(context, need.package) is None
    ):
        return False
    if other is None and (
        find_line(context, need.of) is not None or find_listed_provider(context, need.of) is None
    ):
        return False
    return (
        other is None
        or has_version_in_range(parse_specifiers(other.specifiers), need.specifier[1:])
    ) and not is_capped(context, need.of, need.specifier)


def _unmet_finding(
    rule: Rule,
    context: LintContext,
    package: RequestedPackage,
    other: RequestedPackage,
    need: UndeclaredRequirement,
    severity: Severity,
    *,
    declared: bool,
) -> Diagnostic:
    used = (
        need.of == "bitsandbytes"
        and context.spec.training.method == "qlora"
        and severity is Severity.WARNING
    )
    undeclared = "" if declared else ", which it does not declare"
    return rule.diagnostic(
        f"{package.description} needs {need.of}{need.specifier}{undeclared}; "
        f"{other.description} is {'there' if context.resolved else 'asked for'}",
        origin_route(context, other, package.route),
        severity=Severity.ERROR if used else severity,
        why=f"{need.effect[0].upper()}{need.effect[1:]}.",
        help=f"ask for {need.of}{need.specifier}" + _newer_release_help(need),
        related=related_at(package.route, f"{package.name} let in here")
        if other.package and package.package
        else (),
        fix=set_version_fix(context, other, need.specifier),
    )


def _open_finding(
    rule: Rule,
    context: LintContext,
    package: RequestedPackage,
    other: RequestedPackage | None,
    need: UndeclaredRequirement,
) -> Diagnostic:
    return rule.diagnostic(
        f"{package.description} needs {need.of}{need.specifier}, which it does not declare, "
        f"and nothing here keeps {need.of} below {need.specifier.lstrip('<=')}",
        other.route if other else package.route,
        severity=Severity.WARNING,
        why=f"Resolving takes the newest {need.of} that it may; then {need.effect}.",
        help=f"add {need.of}{need.specifier}" + _newer_release_help(need),
        related=related_at(package.route, f"{package.name} asked for here") if other else (),
        fix=set_version_fix(context, other, need.specifier)
        if other
        else add_package_fix(need.of, need.specifier),
    )


def _newer_release_help(need: UndeclaredRequirement) -> str:
    if need.last and need.first != need.last:
        return f", or a {need.package} newer than {need.last}"
    return ""
