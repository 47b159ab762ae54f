"""None of the releases of a package that are asked for runs on the Python that is asked for.

## What it does

Compares `python` with what the releases of transformers, accelerate, datasets, vllm and others declare. (torch has a rule of its own: it is its wheels that
decide there.)

## Why

Resolving finds nothing, or with looser bounds silently takes a release that is years older.

## How to fix

Take the Python or the release that the finding gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.versions import specified
from provision.rules.needs import Asked, Row, every, possible, rows_of, tidy
from provision.rules.rule import Case, Example, Resolved, Rule, seen


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each such package; not for a resolved set, where the resolver has looked."""
    if case.resolved is not None:
        return
    for name, one in every(case).items():
        found = possible(case.facts, name, one.specifiers) if one.specifiers and rows_of(case.facts, name) else None
        if found and found.rows and not any(_runs(row, case.spec.python) for row in found.rows):
            yield _finding(case, one, found.rows[0], sure=found.sure)


def _runs(row: Row, python: str) -> bool:
    return not row.python or specified(row.python).contains(python)


def _finding(case: Case, one: Asked, row: Row, *, sure: bool) -> Diagnostic:
    pythons = [known.version for known in case.facts.pythons if _runs(row, known.version)]
    fitting = next((other for other in reversed(rows_of(case.facts, one.name)) if _runs(other, case.spec.python)), None)
    others = f", or {one.name}=={fitting.last}" if fitting else ""
    return RULE.found(
        f"{one.words} needs Python {tidy(row.python)}, and python is {case.spec.python}",
        one.route,
        severity=None if sure else Severity.WARNING,
        why="An installer does not take a release that declares another Python.",
        way_out=(f'write python: "{_nearest(pythons, case.spec.python)}"' if pythons else "take another release") + others,
        related=(seen(("python",), "Python asked for here"),),
    )


def _nearest(pythons: list[str], wanted: str) -> str:
    return min(pythons, key=lambda python: abs(int(python.partition(".")[2]) - int(wanted.partition(".")[2])))


RULE = Rule(
    id="PKG013",
    name="needs-other-python",
    severity=Severity.ERROR,
    summary="No release of a package that is asked for runs on the Python that is asked for.",
    sources=("Requires-Python in the METADATA of the wheels on PyPI",),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: none\npython: "3.10"\npackages: [torch, "transformers[torch]==5.21.1"]\n', "transformers[torch]==5.21.1".join('""')),
        Example('gpu: none\npython: "3.10"\npackages: [numpy==2.3.5]\n', "numpy==2.3.5"),
        Example('gpu: L4\npython: "3.13"\npackages: [vllm==0.9.2]\n', "vllm==0.9.2"),
    ),
    good=(
        Example('gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]==5.21.1"]\n'),
        Example('gpu: none\npython: "3.10"\npackages: [torch, "transformers[torch]==5.20.2"]\n'),
        Example('gpu: none\npython: "3.10"\npackages: [numpy]\n'),
        Example('gpu: none\npython: "3.10"\npackages: [numpy]\n', resolved=Resolved({"numpy": "2.3.5"}, "3.10")),
    ),
)
