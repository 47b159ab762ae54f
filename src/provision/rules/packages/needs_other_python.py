"""No possible release of a package runs on the requested Python.

## What it does

Compares `python` with the Pythons that the releases of transformers, accelerate, datasets, vllm and
others declare, and with the Pythons that NumPy, pandas, SciPy, scikit-learn, pyarrow, tokenizers,
TensorFlow and others have wheels for, also if another package requires them, as transformers does
tokenizers. For about 220 packages all releases are known. (A separate rule checks torch.)

## Why

The resolver finds no release or, with looser bounds, chooses a release that is years older. A
release that is older than a Python declares no upper bound and has no wheel for it; a lock contains
wheels only.

## How to fix

Use the Python or the release that the finding names, or allow building from source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.package_releases import has_wheel, load_releases
from provision.facts.schema_packages import WheelPythons
from provision.facts.versions import has_version_in_range, next_version, parse_specifiers
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import (
    ReleaseRow,
    RequestedPackage,
    declared_specifier,
    possible_releases,
    release_rows,
    requested_packages,
    sort_specifiers,
)
from provision.rules.release_conflicts import (
    ReleaseConflict,
    describe_demand,
    release_conflicts,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolver has checked it
        return
    reported = set()
    for name, finding in _listed_findings(context):
        reported.add(name)
        yield finding
    for conflict in release_conflicts(context):
        if conflict.admitted and conflict.name != "torch" and not conflict.names & reported:
            yield _conflict_finding(context, conflict)


def _listed_findings(context: LintContext) -> Iterator[tuple[str, Diagnostic]]:
    python = context.spec.python
    for name, package in requested_packages(context).items():
        if not package.specifiers:
            continue
        releases = possible_releases(context.facts, name, package.specifiers)
        rows = releases.rows if releases else ()
        windows = [declared_specifier(row, "tokenizers") for row in rows]
        if rows and not any(_admits_python(row, python) for row in rows):
            sure = bool(releases and releases.is_complete)
            yield name, _finding(context, package, rows[0], sure=sure)
        elif not (package.package and package.package.is_built) and _lacks_wheel(
            context, name, package.specifiers
        ):
            yield name, _no_wheel_finding(context, package, name, package.specifiers)
        elif (
            name == "transformers"
            and windows
            and releases
            and releases.is_complete
            and find_line(context, "tokenizers") is None
            and all(window and _lacks_wheel(context, "tokenizers", window) for window in windows)
        ):
            yield name, _no_wheel_finding(context, package, "tokenizers", windows[0] or "")


def _admits_python(row: ReleaseRow, python: str) -> bool:
    return parse_specifiers(row.python).contains(python)


def _finding(
    context: LintContext, package: RequestedPackage, row: ReleaseRow, *, sure: bool
) -> Diagnostic:
    python = context.spec.python
    options = _python_options(context, lambda version: _admits_python(row, version))
    for other in reversed(release_rows(context.facts, package.name)):
        if _admits_python(other, python):
            options = [*(options or ["use a different release"]), f"{package.name}=={other.last}"]
            break
    return RULE.diagnostic(
        f"{package.description} requires Python {sort_specifiers(row.python)}, but `python` is "
        f"{python}",
        package.route,
        severity=None if sure else Severity.WARNING,
        why="Installers reject a release that does not support the Python version.",
        help=", or ".join(options) or "use a different release",
        related=related_at(("python",), "Python requested here"),
    )


def _lacks_wheel(context: LintContext, name: str, specifiers: str) -> bool:
    """Return whether no admitted release has a wheel for the Python; False if newer may have."""
    table = context.facts.wheel_pythons.get(name, ())
    python = context.spec.python
    if not table or all(python != known.version for known in context.facts.pythons):
        return False
    if has_version_in_range(parse_specifiers(specifiers), next_version(table[-1].last)):
        return False
    return not any(row.supports(python) for row in _admitted(table, specifiers))


def _admitted(table: tuple[WheelPythons, ...], specifiers: str) -> list[WheelPythons]:
    admits = parse_specifiers(specifiers)
    return [row for row in table if has_version_in_range(admits, row.first, next_version(row.last))]


def _no_wheel_finding(
    context: LintContext, package: RequestedPackage, name: str, specifiers: str
) -> Diagnostic:
    table = context.facts.wheel_pythons[name]
    python = context.spec.python
    admitted = _admitted(table, specifiers)
    options = _python_options(
        context, lambda version: any(row.supports(version) for row in admitted)
    )
    subject = package.description
    if name != package.name:
        subject += f" requires {name}{sort_specifiers(specifiers)}, which"
    fitting = next((row.first for row in table if row.supports(python)), None)
    if fitting:
        options.append(
            f"use {name}>={fitting}"
            if name == package.name
            else f"use a transformers release that accepts {name} {fitting}"
        )
    options += _build_options(name, package)
    newest = admitted[-1].newest if admitted else ""
    return RULE.diagnostic(
        f"{subject} has no wheel for Python {python}"
        + (f"; the newest Python with a wheel is {newest}" if newest else ""),
        package.route,
        evidence=table[0].evidence,
        why="`lock` uses only wheels; it does not build this package from source.",
        help=", or ".join(options) or "use a different release",
        related=related_at(("python",), "Python requested here"),
    )


def _conflict_finding(context: LintContext, conflict: ReleaseConflict) -> Diagnostic:
    """Return the finding about a package of which no admitted release runs on the Python."""
    releases, line, python = load_releases()[conflict.name], conflict.line, context.spec.python
    admitted = conflict.admitted & ~releases.without_wheel or conflict.admitted
    newest, *_ = releases.groups_of(admitted)
    subject, relative = line.description, ""
    if line.name != conflict.name:
        texts = [describe_demand(conflict, demand, context) for demand in conflict.demands]
        subject, relative = " and ".join(texts), ", which"
    if has_wheel(newest.wheels, python):
        lacks = f"requires Python {sort_specifiers(newest.python)}, but `python` is {python}"
    else:
        pythons = newest.wheels.removesuffix("-").replace("-", " to ")
        lacks = f"has no wheel for Python {python}, only for {pythons}"
    options = _python_options(
        context,
        lambda version: bool(admitted & releases.on_python(version, may_build=False)),
    )
    fitting = releases.on_python(python, may_build=False) & ~releases.newer
    fitting &= ~releases.without_wheel
    if fitting and line.name == conflict.name:
        options.append(f"use {line.name}=={releases.newest_of(fitting)}")
    if not has_wheel(newest.wheels, python):
        options += _build_options(conflict.name, line)
    return RULE.diagnostic(
        f"{subject}{relative} {lacks}",
        line.route,
        why="Without a wheel, the package has to be built from source, and old releases often do "
        "not build with a newer Python.",
        help=", or ".join(options) or f"use a release that has wheels for Python {python}",
        related=related_at(("python",), "Python requested here"),
    )


def _build_options(name: str, line: RequestedPackage) -> list[str]:
    """Return the advice to build a package from source, if it has source distributions."""
    releases = load_releases().get(name)
    if releases is None or all(group.wheels != "none" for group in releases.groups):
        return []
    value, subject = ("true", "") if name == line.name else (f"[{name}]", f" on {line.name}")
    return [f"set `build: {value}`{subject} to build it from source"]


def _python_options(context: LintContext, is_possible: Callable[[str], bool]) -> list[str]:
    """Return the advice to use the nearest possible Python, if there is any."""
    requested = _minor(context.spec.python)
    pythons = filter(is_possible, (release.version for release in context.facts.pythons))
    nearest = min(pythons, key=lambda python: abs(_minor(python) - requested), default=None)
    return [f'set `python: "{nearest}"`'] if nearest else []


def _minor(python: str) -> int:
    return int(python.partition(".")[2])


RULE = Rule(
    id="PKG013",
    name="needs-other-python",
    severity=Severity.ERROR,
    sources=(
        "Requires-Python in the METADATA of the wheels on PyPI",
        "tags in the file names of the wheels on PyPI",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.10"\npackages: [torch, «"transformers[torch]==5.21.1"»]\n',
        example(
            'gpu: none\npython: "3.9"\npackages: [torch, «"transformers[torch]==5.13.1"»]\n',
            other_ids=("PYT002",),
        ),
        'gpu: none\npython: "3.10"\npackages: [«numpy==2.3.5»]\n',
        'gpu: L4\npython: "3.13"\npackages: [«vllm==0.9.2», transformers==4.53.3]\n',
        'gpu: none\npython: "3.12"\npackages: [«numpy==1.24.4»]\n',
        'gpu: none\npython: "3.12"\npackages: ["numpy<2", «"pandas>=1.5,<2.1"»]\n',
        'gpu: A100-80GB\npython: "3.12"\npackages: [torch==2.4.0, «autoawq==0.2.5»]\n',
        'gpu: none\npython: "3.12"\npackages: [«numba==0.57.1»]\n',
        'gpu: none\npython: "3.13"\npackages: [«pydantic==2.5.0»]\n',
        example(
            'gpu: none\npython: "3.10"\npackages: [«transformers==4.11.1»]\n', other_ids=("PKG003",)
        ),
        'gpu: none\npython: "3.10"\n'
        "packages: [«pytorch-lightning==1.3.3», torchmetrics==0.7.3, numpy==1.26.4]\n",
        example(
            'gpu: none\npython: "3.12"\npackages: [«transformers==4.33.3»]\n', other_ids=("PKG001",)
        ),
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]==5.21.1"]\n',
            'gpu: none\npython: "3.10"\npackages: [torch, "transformers[torch]==5.20.2"]\n',
            'gpu: none\npython: "3.10"\npackages: [numpy]\n',
            'gpu: A100-80GB\npython: "3.11"\npackages: [torch==2.4.0, autoawq==0.2.5]\n',
            'gpu: none\npython: "3.12"\n'
            'packages: [{name: numba, version: "==0.57.1", build: true}]\n',
            'gpu: none\npython: "3.10"\n'
            'packages: [{name: pytorch-lightning, version: "==1.3.3", build: [pyyaml]}]\n',
            'gpu: none\npython: "3.11"\npackages: [numpy==1.24.4, tokenizers==0.13.3]\n',
            'gpu: none\npython: "3.12"\npackages: ["numpy>=1.24.4", tokenizers==0.21.0]\n',
        ),
        Example(
            'gpu: none\npython: "3.10"\npackages: [numpy]\n',
            resolved=ResolvedSet({"numpy": "2.3.5"}, "3.10"),
        ),
    ),
)
