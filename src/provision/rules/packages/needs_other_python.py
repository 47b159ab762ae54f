"""No possible release of a package runs on the requested Python.

## What it does

Compares `python` with what the releases of transformers, accelerate, datasets, vllm and others
declare, and with the Pythons that NumPy, pandas, SciPy, scikit-learn, pyarrow, tokenizers,
TensorFlow and others have wheels for; also with those of the tokenizers that transformers requires.
(A separate rule checks torch.)

## Why

Resolving finds nothing, or with looser bounds silently takes a release that is years older. A
release from before a Python came out declares no upper bound, and has no wheel for it either; a
lock contains wheels only.

## How to fix

Take the Python or the release that the finding gives.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Severity
from provision.facts.versions import has_version_in_range, next_version, parse_specifiers
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import (
    PossibleReleases,
    ReleaseRow,
    RequestedPackage,
    declared_specifier,
    possible_releases,
    release_rows,
    requested_packages,
    sort_specifiers,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:
        return
    for name, package in requested_packages(context).items():
        releases = None
        if package.specifiers and release_rows(context.facts, name):
            releases = possible_releases(context.facts, name, package.specifiers)
        if (
            releases
            and releases.rows
            and not any(_admits_python(row, context.spec.python) for row in releases.rows)
        ):
            yield _finding(context, package, releases.rows[0], sure=releases.is_complete)
        elif (
            package.specifiers
            and not (package.package and package.package.build)
            and _without_wheel(context, name, package.specifiers)
        ):
            yield _no_wheel_finding(context, package, name, package.specifiers)
        elif releases and name == "transformers":
            yield from _tokenizers_findings(context, package, releases)


def _admits_python(row: ReleaseRow, python: str) -> bool:
    return not row.python or parse_specifiers(row.python).contains(python)


def _finding(
    context: LintContext, package: RequestedPackage, row: ReleaseRow, *, sure: bool
) -> Diagnostic:
    pythons = [
        known.version for known in context.facts.pythons if _admits_python(row, known.version)
    ]
    fitting = next(
        (
            other
            for other in reversed(release_rows(context.facts, package.name))
            if _admits_python(other, context.spec.python)
        ),
        None,
    )
    others = f", or {package.name}=={fitting.last}" if fitting else ""
    return RULE.diagnostic(
        f"{package.description} needs Python {sort_specifiers(row.python)}, and python is "
        f"{context.spec.python}",
        package.route,
        severity=None if sure else Severity.WARNING,
        why="An installer does not take a release that declares another Python.",
        help=(
            f'write python: "{_nearest(pythons, context.spec.python)}"'
            if pythons
            else "take another release"
        )
        + others,
        related=related_at(("python",), "Python asked for here"),
    )


def _without_wheel(context: LintContext, name: str, specifiers: str) -> bool:
    """Return whether no admitted release has a wheel for the Python; False if newer may have."""
    table = context.facts.wheel_pythons.get(name, ())
    admits = parse_specifiers(specifiers)
    python = context.spec.python
    if (
        not table
        or python not in {known.version for known in context.facts.pythons}
        or has_version_in_range(admits, next_version(table[-1].last))
    ):
        return False
    return not any(
        row.supports(python) and has_version_in_range(admits, row.first, next_version(row.last))
        for row in table
    )


def _tokenizers_findings(
    context: LintContext, package: RequestedPackage, releases: PossibleReleases
) -> Findings:
    """Yield a finding if no tokenizers that transformers admits has a wheel for the Python."""
    if find_line(context, "tokenizers") is None:
        windows = [declared_specifier(row, "tokenizers") for row in releases.rows]
    else:
        windows = []
    if (
        windows
        and releases.is_complete
        and all(window and _without_wheel(context, "tokenizers", window) for window in windows)
    ):
        yield _no_wheel_finding(context, package, "tokenizers", windows[0] or "")


def _no_wheel_finding(
    context: LintContext, package: RequestedPackage, name: str, specifiers: str
) -> Diagnostic:
    table = context.facts.wheel_pythons[name]
    python = context.spec.python
    admitted = [
        row
        for row in table
        if has_version_in_range(parse_specifiers(specifiers), row.first, next_version(row.last))
    ]
    fitting = next((row for row in table if row.supports(python)), None)
    if name == package.name:
        subject = package.description
    else:
        subject = f"{package.description} asks for {name}{sort_specifiers(specifiers)}, which"
    pythons = [
        known.version
        for known in context.facts.pythons
        if any(row.supports(known.version) for row in admitted)
    ]
    ways = [f'write python: "{_nearest(pythons, python)}"'] if pythons else []
    ways += (
        [
            f"ask for {name}>={fitting.first}"
            if name == package.name
            else f"ask for a transformers that takes {name} {fitting.first}"
        ]
        if fitting
        else []
    )
    return RULE.diagnostic(
        f"{subject} has no wheel for Python {python}"
        + (
            f": its newest is for {admitted[-1].newest}" if admitted and admitted[-1].newest else ""
        ),
        package.route,
        evidence=table[0].evidence,
        why="A lock holds wheels only: nothing is built from source.",
        help=", or ".join(ways) or "take another release",
        related=related_at(("python",), "Python asked for here"),
    )


def _nearest(pythons: list[str], wanted: str) -> str:
    return min(
        pythons,
        key=lambda python: abs(int(python.partition(".")[2]) - int(wanted.partition(".")[2])),
    )


RULE = Rule(
    id="PKG013",
    name="needs-other-python",
    severity=Severity.ERROR,
    sources=(
        "Requires-Python in the METADATA of the wheels on PyPI",
        "tags in the file names of the wheels on PyPI",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.10"\npackages: [torch, "transformers[torch]==5.21.1"]\n',
            "transformers[torch]==5.21.1".join('""'),
        ),
        Example(
            'gpu: none\npython: "3.9"\npackages: [torch, "transformers[torch]==5.13.1"]\n',
            "transformers[torch]==5.13.1".join('""'),
            other_ids=("PYT002",),
        ),
        Example('gpu: none\npython: "3.10"\npackages: [numpy==2.3.5]\n', "numpy==2.3.5"),
        Example('gpu: L4\npython: "3.13"\npackages: [vllm==0.9.2]\n', "vllm==0.9.2"),
        Example('gpu: none\npython: "3.12"\npackages: [numpy==1.24.4]\n', "numpy==1.24.4"),
        Example(
            'gpu: none\npython: "3.12"\npackages: ["numpy<2", "pandas>=1.5,<2.1"]\n',
            "pandas>=1.5,<2.1".join('""'),
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [transformers==4.33.3]\n',
            "transformers==4.33.3",
            other_ids=("PKG001",),
        ),
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]==5.21.1"]\n',
            'gpu: none\npython: "3.10"\npackages: [torch, "transformers[torch]==5.20.2"]\n',
            'gpu: none\npython: "3.10"\npackages: [numpy]\n',
            'gpu: none\npython: "3.11"\npackages: [numpy==1.24.4, tokenizers==0.13.3]\n',
            'gpu: none\npython: "3.12"\npackages: ["numpy>=1.24.4", tokenizers==0.21.0]\n',
        ),
        Example(
            'gpu: none\npython: "3.10"\npackages: [numpy]\n',
            resolved=ResolvedSet({"numpy": "2.3.5"}, "3.10"),
        ),
    ),
)
