"""Two listed packages cannot be installed together by what their releases declare.

## What it does

Compares each pair of listed packages with what their releases declare: about each other
(transformers requires a range of tokenizers, vllm one torch), and about a package that is not
listed (transformers 4.57 requires huggingface-hub below 1, datasets 5.1 requires 1.31 or newer). It
reports a pair only if no release that the bounds admit would do.

## Why

Resolving finds no set of versions, minutes later and in a longer text. With `pip install
--no-deps`, or packages installed one after the other, the conflict is installed and shows at import
("tokenizers>=0.22.0,<=0.23.0 is required for a normal functioning of this module").

## How to fix

Widen one of the two bounds to the one that the finding gives.
"""

from __future__ import annotations

import itertools

from provision.diagnostics import Severity
from provision.facts.versions import is_satisfiable
from provision.rules.package_requirements import (
    PossibleReleases,
    RequestedPackage,
    declared_specifier,
    possible_releases,
    release_rows,
    requested_packages,
    set_version_fix,
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

MOST_ROWS = 8
"""Packages with more admitted rows are not compared about a package that is not listed, because a
resolver can choose among them. Our choice.
"""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or len(context.spec.packages) < 2:
        return
    listed = requested_packages(context)
    releases = {
        name: own_releases
        for name, package in listed.items()
        if package.specifiers
        and (own_releases := possible_releases(context.facts, name, package.specifiers))
        and own_releases.rows
    }
    for name, own_releases in releases.items():
        for of in {key.partition("[")[0] for key in own_releases.rows[0].declared} & listed.keys():
            if listed[of].specifiers:
                yield from _pair_conflicts(context, listed[name], own_releases, listed[of])
    for (package, left), (two, right) in itertools.combinations(releases.items(), 2):
        if max(len(left.rows), len(right.rows)) <= MOST_ROWS:
            yield from _common_dependency_conflicts(
                context, listed, (listed[package], left), (listed[two], right)
            )


def _pair_conflicts(
    context: LintContext,
    package: RequestedPackage,
    own_releases: PossibleReleases,
    other: RequestedPackage,
) -> Findings:
    declared = [
        declared_specifier(row, other.name, package.package.extras if package.package else ())
        for row in own_releases.rows
    ]
    if any(
        specifier is None or is_satisfiable(specifier, other.specifiers) for specifier in declared
    ):
        return
    wanted = sort_specifiers(declared[0] or "")
    fits = _newest_accepting(context, package, other)
    yield RULE.diagnostic(
        f"{package.description} needs {other.name}{wanted}, and {other.description} is asked for",
        other.route,
        severity=None if own_releases.is_complete else Severity.WARNING,
        why=f"No {package.name} that is asked for takes it, so that no set of versions can be "
        "found.",
        help=f"ask for {other.name}{wanted}" + (f", or for {package.name}=={fits}" if fits else ""),
        related=related_at(package.route, f"{package.name} asked for here"),
        fix=set_version_fix(context, other, wanted),
    )


def _newest_accepting(
    context: LintContext, package: RequestedPackage, other: RequestedPackage
) -> str | None:
    extras = package.package.extras if package.package else ()
    fitting = (
        row
        for row in reversed(release_rows(context.facts, package.name))
        if (declared := declared_specifier(row, other.name, extras)) is not None
        and is_satisfiable(declared, other.specifiers)
    )
    return next((row.last for row in fitting), None)


def _common_dependency_conflicts(
    context: LintContext,
    listed: dict[str, RequestedPackage],
    left: tuple[RequestedPackage, PossibleReleases],
    right: tuple[RequestedPackage, PossibleReleases],
) -> Findings:
    (package, releases), (two, other) = left, right
    for name in sorted(
        releases.rows[0].declared.keys() & other.rows[0].declared.keys() - listed.keys()
    ):
        pairs = itertools.product(
            (declared_specifier(row, name) for row in releases.rows),
            (declared_specifier(row, name) for row in other.rows),
        )
        if "[" in name or any(a is None or b is None or is_satisfiable(a, b) for a, b in pairs):
            continue
        first = sort_specifiers(releases.rows[0].declared[name])
        second = sort_specifiers(other.rows[0].declared[name])
        yield RULE.diagnostic(
            f"{package.description} needs {name}{first}, and {two.description} needs "
            f"{name}{second}",
            two.route,
            severity=None if releases.is_complete and other.is_complete else Severity.WARNING,
            why=f"No {name} satisfies both, so that no set of versions can be found.",
            help=_compatible_releases(context, name, (package, releases), (two, other)),
            related=related_at(package.route, f"{package.name} asked for here"),
        )


def _compatible_releases(
    context: LintContext,
    name: str,
    left: tuple[RequestedPackage, PossibleReleases],
    right: tuple[RequestedPackage, PossibleReleases],
) -> str:
    """Return the releases of either package that go with the other one as it is requested."""
    ways = []
    for (package, _), (_, other) in ((left, right), (right, left)):
        wanted = other.rows[0].declared[name]
        fitting = (
            row.last
            for row in reversed(release_rows(context.facts, package.name))
            if (declared := declared_specifier(row, name)) is not None
            and is_satisfiable(declared, wanted)
        )
        ways += [f"{package.name}=={release}" for release in itertools.islice(fitting, 1)]
    if ways:
        return f"ask for {' or '.join(ways)}"
    return f"take one of the two out: no releases of both agree on {name}"


RULE = Rule(
    id="PKG009",
    name="declared-conflict",
    severity=Severity.ERROR,
    sources=(
        "METADATA of the wheels on PyPI",
        "hiyouga/EasyR1#27",
        "YanWenKun/Hunyuan3D-2-WinPortable#104",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.13.1", '
            "tokenizers==0.21.0]\n",
            "tokenizers==0.21.0",
        ),
        Example('gpu: L4\npython: "3.11"\npackages: [torch==2.4.0, vllm==0.7.3]\n', "torch==2.4.0"),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.57.6", '
            "datasets==5.1.0]\n",
            "datasets==5.1.0",
        ),
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==5.13.1", '
            "tokenizers==0.22.0]\n",
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5.13", '
            '"tokenizers<0.23"]\n',
            'gpu: L4\npython: "3.11"\npackages: [torch==2.5.1, vllm==0.7.3]\n',
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]", tokenizers]\n',
            resolved=ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "5.13.1",
                    "tokenizers": "0.22.2",
                    "accelerate": "1.15.0",
                },
                "3.11",
                "cpu",
            ),
        ),
    ),
)
