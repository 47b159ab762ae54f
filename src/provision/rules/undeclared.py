"""What a package needs of another without declaring it, as a finding: what is not met, and what nothing makes sure of."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.packages import Undeclared
from provision.facts.versions import reaches, satisfiable, specified
from provision.rules.lines import line
from provision.rules.needs import Asked, added, asked, bound, brought_by, capped, origin
from provision.rules.rule import Case, Rule, seen


def judged(rule: Rule, case: Case, one: Asked, need: Undeclared, *, declared: bool = False) -> Iterator[Diagnostic]:
    """Yield the finding of a rule about one need of a package that is there; one that it declares is seen to by an installer, as long as it can be met."""
    other, severity = asked(case, need.of), need.evidence.at_most(Severity(need.severity))
    if other is not None and not satisfiable(need.specifier, other.specifiers):
        yield _unmet(rule, case, one, other, need, severity, declared=declared)._replace(source=need.evidence.source)
    elif not declared and case.resolved is None and _runs_away(case, need, other):
        yield _open(rule, case, one, other, need)._replace(source=need.evidence.source)


def _runs_away(case: Case, need: Undeclared, other: Asked | None) -> bool:
    """Tell whether an installer would take a release at or above a ceiling, as nothing in the spec holds it below."""
    if not need.specifier.startswith("<") or case.spec.exclude_newer is not None or line(case, need.package) is None:
        return False
    if other is None and (line(case, need.of) is not None or brought_by(case, need.of) is None):
        return False
    return (other is None or reaches(specified(other.specifiers), need.specifier[1:])) and not capped(case, need.of, need.specifier)


def _unmet(rule: Rule, case: Case, one: Asked, other: Asked, need: Undeclared, severity: Severity, *, declared: bool) -> Diagnostic:
    used = need.of == "bitsandbytes" and case.spec.training.method == "qlora" and severity is Severity.WARNING
    undeclared = "" if declared else ", which it does not declare"
    return rule.found(
        f"{one.words} needs {need.of}{need.specifier}{undeclared}; {other.words} is {'there' if case.resolved else 'asked for'}",
        origin(case, other, one.route),
        severity=Severity.ERROR if used else severity,
        why=f"{need.effect[0].upper()}{need.effect[1:]}.",
        way_out=f"ask for {need.of}{need.specifier}" + _or_else(need),
        related=(seen(one.route, f"{one.name} let in here"),) if other.package and one.package else (),
        fix=bound(case, other, need.specifier),
    )


def _open(rule: Rule, case: Case, one: Asked, other: Asked | None, need: Undeclared) -> Diagnostic:
    return rule.found(
        f"{one.words} needs {need.of}{need.specifier}, which it does not declare, and nothing here keeps {need.of} below {need.specifier.lstrip('<=')}",
        other.route if other else one.route,
        severity=Severity.WARNING,
        why=f"Resolving takes the newest {need.of} that it may; then {need.effect}.",
        way_out=f"add {need.of}{need.specifier}" + _or_else(need),
        related=(seen(one.route, f"{one.name} asked for here"),) if other else (),
        fix=bound(case, other, need.specifier) if other else added(need.of, need.specifier),
    )


def _or_else(need: Undeclared) -> str:
    return f", or a {need.package} newer than {need.last}" if need.last and need.first != need.last else ""
