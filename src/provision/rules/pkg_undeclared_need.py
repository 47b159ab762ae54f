"""A package needs more, or less, of another than it declares, so that an installer puts together what does not work.

## What it does

Compares packages with what their releases are known to need without saying so: names that they import from another package and that are gone there (datasets
2.14 from pyarrow 21, peft 0.17 from transformers 5), and the floors and ceilings that transformers and trl check themselves when they use a package
(bitsandbytes, torchao, kernels, gguf, liger-kernel). In a spec it also speaks when nothing keeps the other package below such a ceiling.

## Why

Installing succeeds, and importing or the first use fails. The newest release of everything is what an installer takes, so that old pins break by themselves
when another package moves on.

## How to fix

Add the bound that the finding gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.packages import Undeclared
from provision.facts.versions import reaches, satisfiable, specified
from provision.rules.lines import line
from provision.rules.needs import Asked, Row, added, asked, bound, brought_by, capped, origin, possible, surely_within
from provision.rules.rule import Case, Example, Resolved, Rule, seen


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each need that is not met, or that nothing in the spec makes sure of."""
    names = case.resolved.versions.keys() if case.resolved else {package.key for package in case.spec.packages}
    for need in case.facts.undeclared:
        if need.severity != "info" and need.package in names and (one := asked(case, need.package)) and surely_within(one.specifiers, need.first, need.last):
            yield from judged(RULE, case, one, need)
    for name in ("transformers", "trl"):
        if name in names and (one := asked(case, name)) is not None:
            for need in _checked_inside(case, one):
                yield from judged(RULE, case, one, need)


def judged(rule: Rule, case: Case, one: Asked, need: Undeclared) -> Iterator[Diagnostic]:
    """Yield the finding of a rule about one need of a package that is there."""
    other, severity = asked(case, need.of), need.evidence.at_most(Severity(need.severity))
    if other is not None and not satisfiable(need.specifier, other.specifiers):
        yield _unmet(rule, case, one, other, need, severity)._replace(source=need.evidence.source)
    elif case.resolved is None and _runs_away(case, need, other):
        yield _open(rule, case, one, other, need)._replace(source=need.evidence.source)


def _checked_inside(case: Case, one: Asked) -> Iterator[Undeclared]:
    """Yield what a package checks itself, where all its possible releases ask for the same or more."""
    found = possible(case.facts, one.name, one.specifiers)
    for row in found.rows[-1:] if found else ():
        for of, floor in row.floors.items():
            yield _checked(row, one, of, f">={floor}", "at least that")
        if len(found.rows if found else ()) == 1:
            for of, ceiling in getattr(row, "ceilings", {}).items():
                yield _checked(row, one, of, f"<{ceiling}", "one below that")


def _checked(row: Row, one: Asked, of: str, specifier: str, what: str) -> Undeclared:
    effect = f"{one.name} looks at the version of {of} itself when it uses it, and takes {what} only"
    return Undeclared(one.name, row.first, row.last, of, specifier, effect, "warning", row.evidence)


def _runs_away(case: Case, need: Undeclared, other: Asked | None) -> bool:
    """Tell whether an installer would take a release at or above a ceiling, as nothing in the spec holds it below."""
    if not need.specifier.startswith("<") or case.spec.exclude_newer is not None or line(case, need.package) is None:
        return False
    if other is None and (line(case, need.of) is not None or brought_by(case, need.of) is None):
        return False
    return (other is None or reaches(specified(other.specifiers), need.specifier[1:])) and not capped(case, need.of, need.specifier)


def _unmet(rule: Rule, case: Case, one: Asked, other: Asked, need: Undeclared, severity: Severity) -> Diagnostic:
    used = need.of == "bitsandbytes" and case.spec.training.method == "qlora" and severity is Severity.WARNING
    return rule.found(
        f"{one.words} needs {need.of}{need.specifier}, which it does not declare; {other.words} is {'there' if case.resolved else 'asked for'}",
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


RULE = Rule(
    id="PKG010",
    name="undeclared-need",
    severity=Severity.ERROR,
    summary="A package needs a release of another that it does not declare.",
    sources=("imports and *_MIN_VERSION constants inside the wheels on PyPI", "huggingface/datasets#7742", "huggingface/peft#3333"),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: none\npython: "3.11"\npackages: [datasets==2.14.4, pyarrow==21.0.0]\n', "pyarrow==21.0.0"),
        Example('gpu: none\npython: "3.11"\npackages: [datasets==2.14.4]\n', "datasets==2.14.4"),
        Example('gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.12.1", peft==0.17.1]\n', "transformers[torch]==5.12.1".join('""')),
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5.4,<5.6", torchao==0.14.1]\n', "torchao==0.14.1"),
        Example(
            'gpu: none\npython: "3.11"\npackages: [peft==0.17.1]\n',
            "peft==0.17.1",
            Resolved({"torch": "2.13.0", "transformers": "5.13.1", "peft": "0.17.1", "accelerate": "1.15.0"}, "3.11", "cpu"),
        ),
    ),
    good=(
        Example('gpu: none\npython: "3.11"\npackages: [datasets==2.14.4, pyarrow==20.0.0]\n'),
        Example('gpu: none\npython: "3.11"\npackages: [datasets==2.14.7]\n'),
        Example('gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.57.6", peft==0.17.1]\n'),
        Example('gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5.4,<5.6", torchao==0.15.0]\n'),
        Example('gpu: none\npython: "3.11"\npackages: [datasets==2.14.4]\nexclude_newer: 2025-06-01\n'),
    ),
)
